from typing import NamedTuple

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore, ResultPage
from cloudpar_protocol.payloads import TaskResult


class Results(NamedTuple):
    """The next results of a package, and where to go on."""

    results: list[TaskResult]
    cursor: int
    more: bool
    size_bytes: int


def read_results(packages: PackageStore, head: Head, cursor: int, room: int) -> Results:
    """Read result pages after a cursor, about `room` bytes of them (0: none).

    A fold that lost its race or crashed leaves a page that no head names. Every page, even such a one, names the valid
    page before it; so all that is reached backwards from the head, or from any later page, is valid.
    """
    last, _ = head.page
    if last <= cursor or not room:
        return Results([], cursor, more=False, size_bytes=0)
    while True:
        pages = packages.pages(head.package_id, cursor, last, room)
        whole = not pages or pages[-1].version >= last
        anchor = head.page if whole else pages[-1].before
        if whole or anchor[0] > cursor:
            break
        room *= 2  # all that was read is one version's valid page among leftovers: look further
    valid = _backwards(pages, anchor, cursor)
    results = [result for page in valid for result in page.results]
    return Results(results, anchor[0], more=not whole, size_bytes=sum(map(_size, results)))


def _backwards(pages: list[ResultPage], anchor: tuple[int, str], cursor: int) -> list[ResultPage]:
    by_name = {(page.version, page.nonce): page for page in pages}
    valid: list[ResultPage] = []
    while anchor[0] > cursor:
        page = by_name[anchor]
        valid.append(page)
        anchor = page.before
    return valid[::-1]


def _size(result: TaskResult) -> int:
    texts = (result.data, result.message, result.traceback, result.stdout, result.stderr)
    return 20 + sum(len(text) for text in texts if text)
