"""The pages of the documentation, and the fenced blocks in them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "examples/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]

TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
"""Pages that a reader follows from the first line to the last: their blocks are no separate examples."""

_FENCE = re.compile(r"^```(?P<language>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block. `then` is the text of a ```text block that follows after nothing but the word "prints"."""

    page: Path
    line: int
    language: str
    text: str
    then: str | None

    @property
    def name(self) -> str:
        """Return the page and the line."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return all blocks of a page, in order."""
    content = page.read_text(encoding="utf-8")
    found = list(_FENCE.finditer(content))
    made = []
    for number, match in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        prints = after is not None and content[match.end() : after.start()].strip() == "prints"
        line = content.count("\n", 0, match.start()) + 1
        then = after["text"] if after is not None and prints else None
        made.append(Block(page, line, match["language"], match["text"], then))
    return made


ALL = [block for page in PAGES for block in blocks(page)]


def without_links(text: str) -> str:
    """Return a text of a page with the words of its links only."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def of(language: str) -> list[Block]:
    """Return all blocks of one language, except those in the reference, which come from docstrings."""
    return [
        block
        for block in ALL
        if block.language == language and block.page.name != "reference.md" and block.page not in TUTORIALS
    ]
