"""The documentation site has all pages, and their links work there. `make docs` also builds it."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from docs.pages import PAGES, ROOT

_LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs/website.py"))


@pytest.fixture(scope="module")
def site(script: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    main: Callable[[Path], None] = script["main"]
    main(folder)
    return folder / "pages"


def test_every_page_and_every_program_is_on_the_site(script: dict[str, Any], site: Path) -> None:
    sources = {*PAGES, *script["programs"]()} - {ROOT / "README.md"}
    assert sources <= set(script["collect"]())
    assert (site / "examples/quickstart.py.md").read_text().startswith("# quickstart.py\n\nTen lines")


def test_links_between_pages_lead_to_files_of_the_site(site: Path) -> None:
    for page in site.rglob("*.md"):
        for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            assert "://" in target or (page.parent / target).is_file(), f"{page.relative_to(site)}: {target}"


def test_a_link_to_a_source_file_becomes_its_path(script: dict[str, Any]) -> None:
    pages = script["collect"]()
    links: Callable[[Path, str, dict[Path, str]], str] = script["_with_links"]
    page = ROOT / "docs/faq.md"
    pages[page] = "faq.md"
    assert links(page, "see [why](../Makefile)", pages) == "see why (`Makefile`)"
    assert links(page, "see [changes](../CHANGELOG.md#030)", pages) == "see [changes](changelog.md#030)"
    with pytest.raises(script["PageError"], match=r"docs/faq\.md links to nowhere\.md, which does not exist"):
        links(page, "see [this](nowhere.md)", pages)


def test_a_page_outside_the_navigation_is_refused(script: dict[str, Any]) -> None:
    pages = script["collect"]() | {ROOT / "docs/lost.md": "lost.md"}
    with pytest.raises(script["PageError"], match=r"NAVIGATION .* lost\.md"):
        script["navigation"](pages)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_list_starts_after_an_empty_line(page: Path) -> None:
    """Without the line, the site's dialect of Markdown adds the items to the paragraph above; code hosts do not."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    assert not re.findall(r"^(?![-*\d|#> ]).+\n(?:[-*]|\d+\.) .*", text, re.MULTILINE)
