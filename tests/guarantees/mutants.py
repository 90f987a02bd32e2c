"""`make mutants` breaks each line that the page lists, in a copy, and checks that the guarantee's tests fail."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markup import escape

from .promises import PAGE, ROOT, promises

SOURCES = ("sdk/protocol", "sdk/python", "functions", "worker")
"""The folders from which the packages are imported."""

_ROW = re.compile(r"^\| *(\d+) *\| *([^|`]+?) *\| *`([^`]+)` *\| *`([^`]+)` *\|$", re.MULTILINE)


class Mutant(NamedTuple):
    """A line of code that a guarantee depends on, and its broken form."""

    number: int
    path: str
    line: str
    broken: str

    def breaks(self, folder: Path) -> None:
        """Break the line in a copy of the project."""
        file = folder / self.path
        text = file.read_text()
        if text.count(self.line) != 1:
            raise click.ClickException(
                f"{self.path} has `{self.line}` {text.count(self.line)} times: correct the table in {PAGE.name}"
            )
        file.write_text(text.replace(self.line, self.broken))


def mutants() -> list[Mutant]:
    """Return all lines of the page."""
    return [Mutant(int(number), *rest) for number, *rest in _ROW.findall(PAGE.read_text())]


def copy(folder: Path) -> None:
    """Copy all tracked files, and untracked ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def holds(number: int, mutant: Mutant | None = None) -> bool:
    """Whether the quick tests of a guarantee pass, with a broken line or with none."""
    (promise,) = [promise for promise in promises() if promise.number == number]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy(folder)
        if mutant:
            mutant.breaks(folder)
        files = [str(file.relative_to(ROOT)) for file in promise.files]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(str(folder / source) for source in SOURCES)}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", *files],
            cwd=folder, env=environment, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode and b" failed" not in done.stdout.splitlines()[-1]:
            raise click.ClickException(done.stdout.decode()[-2000:])  # no test ran to its end
        return done.returncode == 0


@click.command()
@click.option("--only", type=int, multiple=True, help="Break the lines of this guarantee; may be repeated.")
def main(only: tuple[int, ...]) -> None:
    """Break each line; exit code 1 if the tests of one still pass."""
    console, all_noticed = Console(highlight=False), True
    listed = {mutant.number for mutant in mutants()}
    if unknown := set(only) - listed:
        text = f"no line is listed for {min(unknown)}: there are some for {min(listed)} to {max(listed)}"
        raise click.BadParameter(text, param_hint="--only")
    for number, of_number in groupby(mutants(), key=lambda mutant: mutant.number):
        if only and number not in only:
            continue
        with console.status(f"{number} as it is"):
            if not holds(number):
                raise click.ClickException(f"the tests of {number} fail without any line broken")
        for mutant in of_number:
            with console.status(f"{number} {mutant.path}"):
                noticed = not holds(number, mutant)
            all_noticed = all_noticed and noticed
            verdict = "[green]noticed[/]" if noticed else "[bold red]not noticed[/]"
            console.print(f"{number:2} {mutant.path}: {escape(mutant.line)}: {verdict}", soft_wrap=True)
    sys.exit(0 if all_noticed else 1)


if __name__ == "__main__":
    main()
