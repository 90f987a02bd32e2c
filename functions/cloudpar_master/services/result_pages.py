from typing import NamedTuple

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore, ResultPage
from cloudpar_protocol.payloads import TaskResult

MOST_BYTES = 2**30
"""There are not so many leftovers; pages that are not found in so much were deleted."""


class Results(NamedTuple):
    """The next results of a package, and where to go on."""

    results: list[TaskResult]
    cursor: int
    more: bool
    size_bytes: int


def read_results(packages: PackageStore, head: Head, cursor: int, room: int) -> Results:
    """Read result pages after a cursor, about `room` bytes of them (0: only find out whether there are more).

    A fold that lost its race or crashed leaves a page that no head names. Every page, even such a one, names the valid
    page before it; so all that is reached backwards from the head, or from any later page, is valid.
    """
    last, _ = head.page
    if last <= cursor or not room:
        return Results([], cursor, more=last > cursor, size_bytes=0)
    while True:
        pages = packages.pages(head.package_id, cursor, last, room)
        by_name = {(page.version, page.nonce): page for page in pages}
        whole = head.page in by_name
        anchor = head.page if whole or not pages else pages[-1].before
        if whole or not pages or anchor[0] > cursor or room > MOST_BYTES:
            break
        room *= 2  # all that was read is one version's valid page among leftovers: look further
    valid: list[ResultPage] = []
    end = anchor[0]
    while anchor[0] > cursor:
        page = by_name.get(anchor)
        if page is None:  # the package was deleted since its head was read: the next answer says so
            return Results([], cursor, more=False, size_bytes=0)
        valid.append(page)
        anchor = page.before
    results = [result for page in reversed(valid) for result in page.results]
    return Results(results, end, more=not whole, size_bytes=sum(map(_size, results)))


def _size(result: TaskResult) -> int:
    texts = (result.data, result.message, result.traceback, result.stdout, result.stderr)
    return 20 + sum(len(text) for text in texts if text)
