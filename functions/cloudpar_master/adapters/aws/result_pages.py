"""How result pages lie in the package's table: r#<version>#<nonce>#<part>, so that a query reads them in order."""

from collections.abc import Iterable, Iterator

import msgspec

from cloudpar_master.ports import ResultPage
from cloudpar_protocol.payloads import TaskResult

from .compression import pack, unpack
from .rows import Row

PAGE = "r#"
PART_BYTES = 350_000
"""A row has 400 KB at most."""

_results = msgspec.msgpack.Decoder(list[TaskResult])


def first_key(version: int) -> str:
    """No page of this version or a later one lies before."""
    return f"{PAGE}{version:012}"


def last_key(version: int) -> str:
    """No page of this version or an earlier one lies behind."""
    return f"{PAGE}{version:012}$"


def page_rows(package_id: str, page: ResultPage) -> list[Row]:
    """A page as one row, or as several if it is large."""
    body = pack(page.results)
    parts = [body[first : first + PART_BYTES] for first in range(0, len(body), PART_BYTES)]
    version, nonce = page.before
    return [
        {
            "pk": package_id,
            "sk": f"{first_key(page.version)}#{page.nonce}#{number:03}",
            "results": part,
            "parts": len(parts),
            "before": f"{version}#{nonce}",
        }
        for number, part in enumerate(parts)
    ]


def read_pages(found: Iterable[Row], limit_bytes: int) -> list[ResultPage]:
    """Pages of rows that come in order: two if there are two, then about `limit_bytes`, and always whole versions.

    A page with a missing part was left by a writer that died, so no head names it.
    """
    pages: list[ResultPage] = []
    room = limit_bytes
    for version, nonce, group in _groups(found):
        if len(pages) >= 2 and room < 0 and version != pages[-1].version:
            break
        if len(group) < group[0]["parts"]:
            continue
        body = unpack(b"".join(row["results"] for row in group))
        before, _, before_nonce = group[0]["before"].partition("#")
        pages.append(ResultPage(version, nonce, (int(before), before_nonce), _results.decode(body)))
        room -= len(body)
    return pages


def _groups(found: Iterable[Row]) -> Iterator[tuple[int, str, list[Row]]]:
    """Rows of one page together."""
    name, group = "", list[Row]()
    for row in found:
        page, _, _ = row["sk"].rpartition("#")
        if group and page != name:
            yield _named(name, group)
            group = []
        name = page
        group.append(row)
    if group:
        yield _named(name, group)


def _named(name: str, group: list[Row]) -> tuple[int, str, list[Row]]:
    version, _, nonce = name.removeprefix(PAGE).partition("#")
    return int(version), nonce, group
