"""The glossary defines each word of the project once, in order, and the pages use and link its entries."""

import re
from typing import Final

from docs.pages import PAGES, ROOT
from docs.test_tables import anchors

GLOSSARY: Final = ROOT / "docs/glossary.md"
READERS: Final = [*(page for page in PAGES if page != GLOSSARY), ROOT / "sdk/typescript/README.md"]
ENTRIES: Final = re.findall(r"^### (.*)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)


def test_the_entries_are_in_alphabetical_order_and_each_is_there_once() -> None:
    assert sorted(set(ENTRIES)) == ENTRIES


def test_every_link_to_the_glossary_leads_to_an_entry() -> None:
    known = anchors(GLOSSARY)
    for page in READERS:
        linked = re.findall(r"glossary\.md#([^)\s]*)", page.read_text(encoding="utf-8"))
        assert set(linked) <= known, page


def test_every_entry_is_used_by_a_page() -> None:
    text = " ".join(page.read_text(encoding="utf-8") for page in READERS).lower()
    unused = [entry for entry in ENTRIES if not re.search(rf"\b{entry.replace(' ', chr(92) + 's+')}s?\b", text)]
    assert not unused
