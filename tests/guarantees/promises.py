"""The guarantees as their page states them, and the tests that carry their numbers."""

import re
from pathlib import Path
from typing import Final, NamedTuple

from docs.pages import without_links

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guarantees.md"
MEASURED: Final = {7, 10, 15, 16, 17, 22, 23}
"""Their tests measure time or memory of real processes, which tests at the same time would disturb."""

_ROW = re.compile(r"^\| *(\d+) *\| *([^|]+?) *\| *([^|]+?) *\|$", re.MULTILINE)


class Promise(NamedTuple):
    """One row of the page."""

    number: int
    words: str
    asked: str

    @property
    def files(self) -> list[Path]:
        return sorted((ROOT / "tests").rglob(f"test_g{self.number:02}_*.py"))

    @property
    def at_once(self) -> int:
        """How many of its tests run in parallel; 0: one after the other, in one process."""
        return 0 if self.number in MEASURED else 2


def promises() -> list[Promise]:
    return [
        Promise(int(number), words, asked) for number, words, asked in _ROW.findall(without_links(PAGE.read_text()))
    ]
