"""`make guarantees`: each guarantee's test with its full figure, one after the other; what held is not run again.

A guarantee is run again when a tracked file of the project has changed, or a file that is not ignored came to it.
"""

import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import click
import msgspec
import pytest
from rich.console import Console

from .promises import ROOT, Promise, promises
from .scale import FIGURES, FULL, Reached, in_words

STATE = ROOT / "build/guarantees"
TIMEOUT_S = 3600
READ = ("docs/isolation.md", "docs/openapi.json")
"""Of the documentation, what tests of guarantees read."""


class Outcome(msgspec.Struct):
    """What a run found, and of which state of the project."""

    project: str
    ok: bool
    seconds: float
    reached: list[Reached]


def fingerprint() -> str:
    """Of all files that may matter; documentation that no test reads does not."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!docs", ":!*.md"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    digest = hashlib.sha256()
    for name in sorted({*filter(None, listed.stdout.split(b"\0")), *map(os.fsencode, READ)}):
        path = ROOT / os.fsdecode(name)
        digest.update(name + b"\0" + (path.read_bytes() if path.is_file() else b"") + b"\0")
    return digest.hexdigest()


def before(promise: Promise) -> Outcome | None:
    """What the last run of one found."""
    try:
        return msgspec.json.decode(_state(promise).read_bytes(), type=Outcome)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def run(promise: Promise, project: str) -> Outcome:
    """Run the tests of one; what they print goes to a file beside the outcome.

    Raises:
        KeyboardInterrupt: They were interrupted; that is no outcome.
    """
    if not promise.files:
        return Outcome(project, ok=False, seconds=0.0, reached=[])
    figures, log = _state(promise).with_suffix(".figures"), _state(promise).with_suffix(".log")
    figures.unlink(missing_ok=True)
    environment = os.environ | {FULL: "full", FIGURES: str(figures)}
    command = [sys.executable, "-m", "pytest", f"-n{promise.at_once}", "--dist=worksteal", f"--timeout={TIMEOUT_S}"]
    began = time.monotonic()
    with log.open("wb") as out:
        done = subprocess.run(
            [*command, *map(str, promise.files)], cwd=ROOT, env=environment, stdout=out, stderr=out, check=False
        )
    if done.returncode == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    lines = figures.read_bytes().splitlines() if figures.exists() else []
    reached = [msgspec.json.decode(line, type=Reached) for line in lines]
    ok = done.returncode == 0 and bool(reached) and b" skipped" not in log.read_bytes().splitlines()[-1]
    outcome = Outcome(project, ok, time.monotonic() - began, reached)
    _state(promise).write_bytes(msgspec.json.encode(outcome))
    return outcome


def _state(promise: Promise) -> Path:
    return STATE / f"{promise.number:02}.json"


def line(promise: Promise, outcome: Outcome, *, anew: bool) -> str:
    """Number, figure asked, figure reached, ok or not."""
    figures = "; ".join(in_words(outcome.reached)) or "nothing"
    verdict = "[green]ok[/]" if outcome.ok else f"[bold red]not ok[/], see {_state(promise).with_suffix('.log')}"
    return (
        f"[bold]{promise.number:2}[/] {promise.words}\n   asked:   {promise.asked}\n   reached: {figures}\n"
        f"   {verdict} ({outcome.seconds:.0f} s{'' if anew else ', seen by an earlier run'})"
    )


@click.command()
@click.option("--only", type=click.IntRange(1, 99), multiple=True, help="Run this one; may be repeated.")
@click.option("--again", is_flag=True, help="Run also what held already.")
def main(only: tuple[int, ...], again: bool) -> None:
    """Run the guarantees; exit code 1 if one does not hold."""
    STATE.mkdir(parents=True, exist_ok=True)
    console, project = Console(highlight=False), fingerprint()
    held = True
    known = {promise.number for promise in promises()}
    if unknown := set(only) - known:
        text = f"there is no guarantee {min(unknown)}: they are 1 to {max(known)}"
        raise click.BadParameter(text, param_hint="--only")
    for promise in promises():
        if only and promise.number not in only:
            continue
        outcome = before(promise)
        anew = again or outcome is None or not outcome.ok or outcome.project != project
        if outcome is None or anew:
            try:
                with console.status(f"{promise.number} {promise.words}"):
                    outcome = run(promise, project)
            except KeyboardInterrupt:
                console.print(f"{promise.number:2} interrupted: the same command goes on with it")
                sys.exit(130)
        console.print(line(promise, outcome, anew=anew), soft_wrap=True)
        held = held and outcome.ok
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
