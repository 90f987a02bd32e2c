"""Runs the programs of other libraries that docs/coming-from.md shows, if their library is installed in this Python.

    python -m bench.coming_from

The exit code is 1 if a program prints something else than its counterpart, or fails.
"""

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parents[1] / "docs/coming-from.md"

_PAIR = re.compile(r"```py\n(?P<there>.*?)```.*?```python\n.*?```\n\nprints\n\n```text\n(?P<prints>.*?)```", re.DOTALL)
_LIBRARY = re.compile(r"^(?:import|from) (\w+)", re.MULTILINE)


class Pair(NamedTuple):
    """A program of another library, and what its counterpart for the pool prints."""

    there: str
    prints: str

    @property
    def library(self) -> str:
        """The first module that the program imports."""
        found = _LIBRARY.search(self.there)
        return found[1] if found else ""


def pairs() -> list[Pair]:
    """Return all pairs that the page shows."""
    return [Pair(found["there"], found["prints"]) for found in _PAIR.finditer(PAGE.read_text(encoding="utf-8"))]


def run(program: str, folder: Path) -> str:
    """Run a program and return what it prints."""
    path = folder / "there.py"
    path.write_text(program, encoding="utf-8")
    ended = subprocess.run([sys.executable, str(path)], cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    return ended.stdout


def main() -> int:
    """Run all programs whose library is installed, print a line for each program, and return the exit code."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for pair in pairs():
            if find_spec(pair.library) is None:
                print(f"{pair.library}: not installed here, not run")
                continue
            printed = run(pair.there, Path(folder))
            wrong += printed != pair.prints
            print(f"{pair.library}: {'ok' if printed == pair.prints else f'not ok: {printed!r}'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
