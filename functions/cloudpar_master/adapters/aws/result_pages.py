"""How result pages are stored in the package's table: under r#<version>, so that a query reads them in order.

A large page is an object in the bucket, and its row names the object, because DynamoDB charges by the kilobyte.
"""

from collections.abc import Callable, Iterable, Sequence

from cloudpar_master.adapters.records import Records
from cloudpar_master.ports import ResultPage, Unreadable
from cloudpar_protocol.payloads import TaskResult

from .compression import pack
from .rows import Row

PAGE = "r#"
ROW_BYTES = 3_000
"""If a page has more bytes, it is stored as an object, which is then cheaper than a row although it takes another
request."""

OBJECT_ROOM = 64_000
"""When pages are read up to a limit of bytes, each object counts as at least this many bytes, because reading it costs
a further request."""


def key(version: int) -> str:
    """Return the sort key of the page of a version."""
    return f"{PAGE}{version:012}"


def page_row(package_id: str, version: int, results: Sequence[TaskResult], writer: str) -> tuple[Row, bytes | None]:
    """Make the row of a page.

    If the page is too large for a row, the row names an object, and the second value is the object's content (otherwise
    None).

    A process that loses the race for a version has also written an object. Without the writer in the object's name,
    this object would overwrite the winner's. Objects are deleted together with the results that workers have uploaded,
    when the package's storage is freed.
    """
    body = pack(results)
    row: Row = {"pk": package_id, "sk": key(version)}
    if len(body) <= ROW_BYTES:
        return {**row, "results": body}, None
    return {**row, "object": f"results/{package_id}/pages/{version}#{writer}"}, body


def read_pages(
    found: Iterable[Row], fetch: Callable[[str], bytes | None], limit_bytes: int, records: Records
) -> list[ResultPage]:
    """Read the pages of rows, in order, up to about `limit_bytes`.

    The first page is returned even if it is larger than the limit. The reading stops before a page whose object is
    missing, and before a damaged page that is not the first. An object is missing if its package was deleted meanwhile,
    or if only the tables were restored from a backup.

    Raises:
        Unreadable: The first page is damaged.
    """
    pages: list[ResultPage] = []
    room = limit_bytes
    for row in found:
        packed = row["results"] if "results" in row else fetch(row["object"])
        if packed is None:
            break  # if there is no page before it, the caller fails the package
        version = int(row["sk"].removeprefix(PAGE))
        try:
            size, results = records.results(row["pk"], version, packed)
        except Unreadable:
            if pages:
                break
            raise
        room -= max(size, OBJECT_ROOM) if "object" in row else size
        if pages and room < 0:
            break
        pages.append(ResultPage(version, results))
    return pages
