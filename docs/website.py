"""Collect the pages of the documentation site, and write its configuration.

    python docs/website.py build/site
    zensical build --strict --config-file build/site/zensical.toml

`make docs` does both. Pages also lie outside docs/, such as the examples' page, because code hosts show a folder's
README.md. A site has one folder of pages, so this script copies all of them into one and rewrites the links between
them. A link to a file that is no page, such as a source file, becomes the file's path.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples/index.md",
    "sdk/typescript/README.md": "javascript.md",
}
"""Pages outside docs/, and their places on the site."""

NAVIGATION: dict[str, list[str]] = {
    "Tutorials": [
        "tutorials/laptop.md",
        "tutorials/several-machines.md",
        "tutorials/aws.md",
        "tutorials/javascript.md",
    ],
    "Guides": [
        "sdk.md",
        "examples/index.md",
        "coming-from.md",
        "faq.md",
        "deploy.md",
        "first-deploy.md",
        "operations.md",
        "runbook.md",
    ],
    "Reference": [
        "reference.md",
        "cli.md",
        "javascript.md",
        "protocol.md",
        "state-machine.md",
        "specification.md",
        "glossary.md",
        "changelog.md",
    ],
    "Explanation": [
        "architecture.md",
        "guarantees.md",
        "isolation.md",
        "security.md",
        "threat-model.md",
        "cost-model.md",
        "benchmarks.md",
        "contributing.md",
    ],
    "Decisions": ["adr/README.md"],
}
"""The tabs of the site and the pages of each, in reading order. Programs and decisions are added by file name."""

_SETTINGS = """\
[project]
site_name = "Cloud Parallelizer"
site_description = "A distributed thread pool: pool.map on this machine, on several, or in your own AWS account"
copyright = "Apache 2.0"
docs_dir = "pages"
site_dir = "html"
nav = {navigation}

[project.theme]
font = false
language = "en"
features = [
    "content.code.copy",
    "navigation.footer",
    "navigation.indexes",
    "navigation.tabs",
    "navigation.top",
    "search.highlight",
    "toc.follow",
]

[[project.theme.palette]]
media = "(prefers-color-scheme: light)"
scheme = "default"
toggle.icon = "lucide/sun"
toggle.name = "Switch to dark mode"

[[project.theme.palette]]
media = "(prefers-color-scheme: dark)"
scheme = "slate"
toggle.icon = "lucide/moon"
toggle.name = "Switch to light mode"

[project.markdown_extensions]
attr_list = {{}}
tables = {{}}
pymdownx.highlight = {{}}
pymdownx.superfences.custom_fences = [
    {{ name = "mermaid", class = "mermaid", format = "pymdownx.superfences.fence_code_format" }},
]

[project.markdown_extensions.toc]
permalink = true
toc_depth = 3
slugify = {{ object = "pymdownx.slugs.slugify", kwds = {{ case = "lower" }} }}
"""
"""Nothing here makes a reader's browser or the build fetch fonts, and nothing counts visits."""

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'^(?:#!.*\n)?(?:"""|/\*\* |// )(?P<title>[^\n]*?)(?:"""| \*/)?$', re.MULTILINE)


class PageError(Exception):
    """A page that cannot be published as it is; the text says why."""


def collect() -> dict[Path, str]:
    """All files of the site: each source below the root, and its place on the site."""
    pages = {ROOT / source: place for source, place in ELSEWHERE.items()}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and path.suffix in {".md", ".svg", ".png", ".json"}:
            pages[path] = path.relative_to(ROOT / "docs").as_posix()
    for path in programs():
        pages[path] = f"examples/{path.name}.md"
    return pages


def programs() -> list[Path]:
    """The example programs; each becomes a page that shows it."""
    return sorted(path for path in (ROOT / "examples").iterdir() if path.suffix in {".py", ".mjs"})


def text_of(source: Path, pages: dict[Path, str]) -> str:
    """What the site shows of a source: a page with its links rewritten, or a program in full."""
    text = source.read_text(encoding="utf-8")
    if source.suffix == ".md":
        return _with_links(source, text, pages)
    title = _TITLE.search(text)
    if title is None:
        raise PageError(f"{source.relative_to(ROOT)} does not start with a comment that says what the program does")
    return f"# {source.name}\n\n{title['title']}\n\n```{source.suffix.lstrip('.')}\n{text}```\n"


def _with_links(source: Path, text: str, pages: dict[Path, str]) -> str:
    def rewritten(link: re.Match[str]) -> str:
        name, _, anchor = link["target"].partition("#")
        if not name or "://" in name:
            return link[0]
        target = (source.parent / name).resolve()
        if target == ROOT / "README.md":  # the site has a first page of its own
            target = ROOT / "docs/index.md"
        if target in pages:
            place = os.path.relpath(pages[target], Path(pages[source]).parent)
            return f"{link['image']}[{link['text']}]({place}{'#' * bool(anchor)}{anchor})"
        if not target.exists():
            raise PageError(f"{source.relative_to(ROOT)} links to {link['target']}, which does not exist")
        return f"{link['text']} (`{target.relative_to(ROOT)}`)"

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(rewritten, text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, _LINK.sub(rewritten, text[end:])])


def navigation(pages: dict[Path, str]) -> str:
    """The navigation as TOML.

    Raises:
        PageError: A page is in no section, or a section names a page that does not exist.
    """
    sections = {name: list(places) for name, places in NAVIGATION.items()}
    sections["Guides"] += [pages[path] for path in programs()]
    sections["Decisions"] += [pages[path] for path in pages if re.fullmatch(r"\d{4}-.*\.md", path.name)]
    named = {"index.md", *(place for places in sections.values() for place in places)}
    there = {place for place in pages.values() if place.endswith(".md")}
    if named != there:
        raise PageError(f"NAVIGATION in docs/website.py and the pages differ: {', '.join(sorted(named ^ there))}")
    lines = [f"    {{ {json.dumps(name)} = {_section(name, places)} }}," for name, places in sections.items()]
    return "\n".join(['["index.md",', *lines, "]"])


def _section(name: str, places: list[str]) -> str:
    if name != "Guides":
        return json.dumps(places)
    inner = [place for place in places if place.startswith("examples/")]
    return "[" + ", ".join(_entries(places, inner)) + "]"


def _entries(places: list[str], inner: list[str]) -> Iterator[str]:
    for place in places:
        if place == inner[0]:
            yield f'{{ "Examples" = {json.dumps(inner)} }}'
        elif place not in inner:
            yield json.dumps(place)


def main(folder: Path) -> None:
    """Write pages and configuration into a folder; what was in it is deleted first."""
    pages = collect()
    settings = _SETTINGS.format(navigation=navigation(pages))
    shutil.rmtree(folder, ignore_errors=True)
    for source, place in pages.items():
        target = folder / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.endswith(".md"):
            target.write_text(text_of(source, pages), encoding="utf-8")
        else:
            shutil.copyfile(source, target)
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except PageError as error:
        sys.exit(f"docs/website.py: {error}")
