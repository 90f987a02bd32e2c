"""The glossary defines each word of the project once, in order, and the pages use and link its entries."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from docs.pages import PAGES, ROOT
from docs.test_tables import anchors

GLOSSARY: Final = ROOT / "docs/glossary.md"
READERS: Final = [*(page for page in PAGES if page != GLOSSARY), ROOT / "sdk/typescript/README.md"]
ENTRIES: Final = re.findall(r"^### (.*)$", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)

CODE: Final = ["sdk/protocol", "sdk/python", "functions", "worker"]

EVERYDAY: Final = {
    "attempt", "challenge", "decision", "deployment", "depth", "draft", "effect", "event", "inline", "isolation",
    "link", "namespace", "outcome", "owner", "pool", "port", "profile", "reference", "reserve", "session", "slice",
    "task", "timer", "trail", "turn", "unit", "window",
}  # fmt: skip
"""Words that pages also use as any text does. A page links such a word where it means the entry."""

LISTS: Final = {"CHANGELOG.md", "docs/reference.md", "docs/adr/README.md"}
"""Pages that are lists: what each release changed, docstrings, and the titles of the records."""

OTHER_SENSES: Final = re.compile(
    r"AWS\s+accounts?|HTTP\s+clients?|session\s+tokens?|gateway\s+endpoints?|(Python|npm)\s+packages?"
    r"|package\s+(registries|repository|index)",
    re.IGNORECASE,
)
"""Where every page means something else."""

EXCEPTIONS: Final = {
    "docs/adr/0011-own-http-client.md": {"package"},
    "docs/adr/0014-confinement-by-owner.md": {"quota"},
    "docs/adr/0027-the-site-is-built-with-zensical.md": {"package"},
    "docs/adr/0029-one-transport.md": {"client", "head", "package"},
    "docs/adr/0103-deploy-uses-the-cdk.md": {"package"},
    "docs/adr/0104-clients-see-the-fleet-start.md": {"account", "quota"},
    "docs/adr/0115-a-fleet-that-does-not-work-pauses.md": {"package", "quota"},
    "docs/adr/0120-a-private-api.md": {"endpoint"},
    "docs/benchmarks.md": {"chunk", "fold", "worker"},
    "docs/cli.md": {"quota"},
    "docs/coming-from.md": {"executor", "head", "package"},
    "docs/deploy.md": {"account", "endpoint", "quota"},
    "docs/faq.md": {"account"},
    "docs/first-deploy.md": {"account"},
    "docs/guarantees.md": {"head"},
    "docs/runbook.md": {"quota"},
    "docs/security.md": {"endpoint"},
    "docs/threat-model.md": {"chunk", "head"},
    "docs/tutorials/aws.md": {"account", "package"},
    "docs/tutorials/javascript.md": {"package"},
    "docs/tutorials/laptop.md": {"chunk", "package"},
    "sdk/typescript/README.md": {"package"},
}
"""Words that first mean something else on a page, such as a package of npm or the head of an HTTP message."""

_SKIPPED: Final = re.compile(
    r"^( *)```.*?^\1```$|^#.*?$|^ {4}.*?$|`[^`]*`|!\[[^]]*\]\([^)]*\)|<[^>]*>", re.MULTILINE | re.DOTALL
)
_LINK: Final = re.compile(r"\[([^]]*)\]\(([^)]*)\)")


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _uses(text: str, entry: str) -> Iterator[re.Match[str]]:
    word = entry.replace(" ", r"\s+")
    return re.finditer(rf"(?<![\w/-]){word}(?:s|es)?(?![\w/-]|\.\w)", text, re.IGNORECASE)


def unlinked(page: str) -> list[tuple[str, int, int]]:
    """Return the entries that a page uses without a link where it uses them first, with the place of this use."""
    text = OTHER_SENSES.sub(_blank, _SKIPPED.sub(_blank, page))
    links = [link.span(1) for link in _LINK.finditer(text)]
    text = _LINK.sub(lambda link: f"[{link[1]}]({' ' * len(link[2])})", text)
    missing = []
    for entry in sorted(ENTRIES, key=len, reverse=True):  # "task data" before "task"
        uses = list(_uses(text, entry))
        for use in uses:
            text = text[: use.start()] + _blank(use) + text[use.end() :]
        if uses and entry not in EVERYDAY:
            first, end = uses[0].span()
            if not any(start <= first < stop for start, stop in links):
                missing.append((entry, first, end))
    return missing


def test_the_entries_are_in_alphabetical_order_and_each_is_there_once() -> None:
    assert sorted(set(ENTRIES)) == ENTRIES


def test_every_link_to_the_glossary_leads_to_an_entry() -> None:
    known = anchors(GLOSSARY)
    for page in READERS:
        linked = re.findall(r"glossary\.md#([^)\s]*)", page.read_text(encoding="utf-8"))
        assert set(linked) <= known, page


@pytest.mark.parametrize("name", sorted({str(page.relative_to(ROOT)) for page in READERS} - LISTS))
def test_a_page_links_each_entry_where_it_uses_it_first(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    missing = [
        f"{entry!r} in {page[max(0, first - 40) : end + 20]!r}"
        for entry, first, end in unlinked(page)
        if entry not in EXCEPTIONS.get(name, ())
    ]
    assert not missing, "\n".join(["link to the glossary:", *missing])


@pytest.mark.parametrize(
    ("page", "missing"),
    [
        ("A chunk. A [chunk](glossary.md#chunk).", ["chunk"]),
        ("A [chunk](glossary.md#chunk). A chunk.", []),
        ("# A chunk\n`chunk`\n```text\nchunk\n```\n", []),
        ("The [task data](glossary.md#task-data) of a task.", []),
        ("Two masters.", ["master"]),
        ("An embedded\nmaster.", ["embedded master"]),
        ("In your AWS account.", []),
        ("The sub-chunk of a chunklet.", []),
    ],
)
def test_a_first_use_without_a_link_is_found(page: str, missing: list[str]) -> None:
    assert [entry for entry, _, _ in unlinked(page)] == missing


def test_every_entry_is_used_by_a_page_or_by_the_code() -> None:
    sources = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    text = " ".join(path.read_text(encoding="utf-8") for path in [*READERS, *sources]).lower()
    unused = [entry for entry in ENTRIES if not re.search(rf"\b{entry.replace(' ', chr(92) + 's+')}s?\b", text)]
    assert not unused
