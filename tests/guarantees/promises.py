"""The guarantees as their page states them, and the tests that carry their numbers."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guarantees.md"
_ROW = re.compile(r"^\| *(\d+) *\| *([^|]+?) *\| *([^|]+?) *\|$", re.MULTILINE)


class Promise(NamedTuple):
    """One row of the page."""

    number: int
    words: str
    asked: str

    @property
    def files(self) -> list[Path]:
        """Its tests."""
        return sorted((ROOT / "tests").rglob(f"test_g{self.number:02}_*.py"))


def promises() -> list[Promise]:
    """All of them."""
    return [Promise(int(number), words, asked) for number, words, asked in _ROW.findall(PAGE.read_text())]
