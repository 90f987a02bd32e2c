"""An exception from a rule of the linter has its reason beside it, in one form."""

import re
from pathlib import Path

import pytest

from docs.pages import ROOT

FOLDERS = ["sdk", "functions", "worker", "tests", "bench", "docs", "examples"]
_MARK = "# no" + "qa"
_REASONED = re.compile(_MARK + r": [A-Z]+[0-9]+(, [A-Z]+[0-9]+)* - \S")


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_exception_says_why(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            assert (_MARK in line) == bool(_REASONED.search(line)), place(path, number)


def place(path: Path, number: int) -> str:
    return f"{path.relative_to(ROOT)}:{number}: write '{_MARK}: RULE - reason'"
