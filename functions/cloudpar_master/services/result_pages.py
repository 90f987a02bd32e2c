from typing import NamedTuple

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore
from cloudpar_protocol.payloads import TaskResult


class Results(NamedTuple):
    """The next results of a package, the cursor behind them, and whether there are more results after it."""

    results: list[TaskResult]
    cursor: int
    more: bool
    size_bytes: int


def read_results(packages: PackageStore, head: Head, cursor: int, room: int) -> Results:
    """Read the result pages after a cursor: about `room` bytes, but at least one page if there is one.

    If `room` is 0, only say whether there are more.
    """
    if head.page <= cursor or not room:
        return Results([], cursor, more=head.page > cursor, size_bytes=0)
    pages = packages.pages(head.package_id, cursor, head.page, room)
    if not pages:  # the package was deleted since its head was read: the next answer says so
        return Results([], cursor, more=False, size_bytes=0)
    results = [result for page in pages for result in page.results]
    end = pages[-1].version
    return Results(results, end, more=end < head.page, size_bytes=sum(map(result_bytes, results)))


def result_bytes(result: TaskResult) -> int:
    """Return about how many bytes a result takes in an answer, including the link if it is a blob."""
    texts = (result.data, result.message, result.traceback, result.stdout, result.stderr, result.input)
    return (48 if result.blob is None else 1_500) + sum(len(text) for text in texts if text)
