"""The examples run, in a small form."""

import subprocess
import sys
from pathlib import Path

from cli.operation import environment

EXAMPLES = Path(__file__).parents[2] / "examples"


def script(folder: Path, name: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        env=environment(), cwd=folder, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_quickstart(tmp_path: Path) -> None:
    told = script(tmp_path, "quickstart.py")
    assert "primes, the first is 1000003" in told
    assert f"20! = {2432902008176640000}" in told
    assert "squares: [0, 1, 4, 9, 16, 25, 36, 49, 64, 81]" in told


def test_mandelbrot_is_complete_although_workers_come_and_go(tmp_path: Path) -> None:
    told = script(tmp_path, "mandelbrot.py", "--width", "120", "--height", "80", "--tile", "10", "--iterations", "200")
    assert told.startswith("96 tiles, by workers ")
    for name in ("mandelbrot.png", "mandelbrot-stages.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_every_example_is_in_the_readme() -> None:
    readme = (EXAMPLES / "README.md").read_text()
    assert all(path.name in readme for path in EXAMPLES.glob("*.py") if path.name != "contact_sheet.py")
