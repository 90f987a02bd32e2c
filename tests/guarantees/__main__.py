"""`make guarantees` runs the tests of each guarantee with their full figures, one guarantee after the other.

A guarantee that held before runs again if a tracked file has changed, or an untracked one that git does not ignore.
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

from support.scale import FIGURES, FULL, Reached, in_words, missed

from .promises import ROOT, Promise, promises

STATE = ROOT / "build/guarantees"
TIMEOUT_S = 3600
READ = ("docs/isolation.md", "docs/openapi.json")
"""The pages that tests of guarantees read."""


class Outcome(msgspec.Struct):
    """The result of a run, and the state of the project that it is about."""

    project: str
    ok: bool
    seconds: float
    reached: list[Reached]


def fingerprint() -> str:
    """Return a hash of all files that tests depend on; documentation that no test reads is left out."""
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
    """Return the outcome of the last run of a guarantee."""
    try:
        return msgspec.json.decode(_state(promise).read_bytes(), type=Outcome)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def run(promise: Promise, project: str) -> Outcome:
    """Run the tests of a guarantee; their output goes to a file beside the outcome.

    Raises:
        KeyboardInterrupt: The run was interrupted, so it has no outcome.
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
    short = missed(reached)
    ok = done.returncode == 0 and bool(reached) and b" skipped" not in log.read_bytes().splitlines()[-1] and not short
    with log.open("a") as text:
        text.writelines(f"{each}\n" for each in short)
    outcome = Outcome(project, ok, time.monotonic() - began, reached)
    _state(promise).write_bytes(msgspec.json.encode(outcome))
    return outcome


def _state(promise: Promise) -> Path:
    return STATE / f"{promise.number:02}.json"


def line(promise: Promise, outcome: Outcome, *, fresh: bool) -> str:
    """Return number, wanted figure, reached figure, and whether it holds."""
    figures = "; ".join(in_words(outcome.reached)) or "nothing"
    verdict = "[green]ok[/]" if outcome.ok else f"[bold red]not ok[/], see {_state(promise).with_suffix('.log')}"
    return (
        f"[bold]{promise.number:2}[/] {promise.words}\n   asked:   {promise.asked}\n   reached: {figures}\n"
        f"   {verdict} ({outcome.seconds:.0f} s{'' if fresh else ', seen by an earlier run'})"
    )


@click.command()
@click.option("--only", type=click.IntRange(1, 99), multiple=True, help="Run this guarantee; may be repeated.")
@click.option("--again", is_flag=True, help="Run guarantees that held before, too.")
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
        fresh = again or outcome is None or not outcome.ok or outcome.project != project
        if outcome is None or fresh:
            try:
                with console.status(f"{promise.number} {promise.words}"):
                    outcome = run(promise, project)
            except KeyboardInterrupt:
                console.print(f"{promise.number:2} interrupted: the same command continues with it")
                sys.exit(130)
        console.print(line(promise, outcome, fresh=fresh), soft_wrap=True)
        held = held and outcome.ok
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
