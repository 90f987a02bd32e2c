"""How result pages lie in the package's table: r#<version>, so that a query reads them in order.

A large page lies in the bucket, and its row names it: a table charges by the kilobyte.
"""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from cloudpar_master.ports import ResultPage
from cloudpar_protocol.payloads import TaskResult

from .compression import pack, unpack
from .rows import Row

PAGE = "r#"
ROW_BYTES = 16_000
"""A larger page is cheaper as an object, though that is another call."""

OBJECT_ROOM = 64_000
"""An object counts as so much at least when pages are read: each is a call."""

_results = msgspec.msgpack.Decoder(list[TaskResult])


def key(version: int) -> str:
    """Where the page of a version is."""
    return f"{PAGE}{version:012}"


def page_row(package_id: str, version: int, results: Sequence[TaskResult], writer: str) -> tuple[Row, bytes | None]:
    """A page as a row, and what is to be stored as the object that it names (None: nothing).

    The loser of the race for a version leaves an object behind, so the name of an object contains its writer. Objects
    go with the results that were too large for a message: when the package's storage is freed.
    """
    body = pack(results)
    row: Row = {"pk": package_id, "sk": key(version)}
    if len(body) <= ROW_BYTES:
        return {**row, "results": body}, None
    return {**row, "object": f"results/{package_id}/pages/{version}#{writer}"}, body


def read_pages(found: Iterable[Row], fetch: Callable[[str], bytes | None], limit_bytes: int) -> list[ResultPage]:
    """Pages of rows that come in order: one if there is one, and about `limit_bytes`."""
    pages: list[ResultPage] = []
    room = limit_bytes
    for row in found:
        packed = row["results"] if "results" in row else fetch(row["object"])
        if packed is None:
            break  # its package was deleted meanwhile
        body = unpack(packed)
        room -= max(len(body), OBJECT_ROOM) if "object" in row else len(body)
        if pages and room < 0:
            break
        pages.append(ResultPage(int(row["sk"].removeprefix(PAGE)), _results.decode(body)))
    return pages
