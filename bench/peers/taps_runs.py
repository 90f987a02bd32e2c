"""`python -m bench.peers.taps_runs` runs an application of TaPS on the pool and on executors of other libraries."""

import re
import sys
from pathlib import Path
from typing import Final

import click

from .engine import WORKERS
from .engines import OURS
from .measurement import LONGEST_REASON, ROOT, Failed, exit_code, last_line, new_folder

WORKERS_OPTION: Final = {
    OURS: "workers",
    "process-pool": "max-processes",
    "dask": "workers",
    "ray": "num-cpus",
}
"""The executors that are compared, and what TaPS calls the number of processes of each. By default it is all cores."""

CHOLESKY: Final = ("--app", "cholesky", "--app.matrix-size", "2000", "--app.block-size", "100")
"""The application by default: a Cholesky decomposition of 20 x 20 blocks."""

RUNS: Final = ROOT / "build/taps/runs/{name}-{executor}-{timestamp}"
"""Where TaPS writes its log and its records. It replaces the names in braces."""

_FINISHED: Final = re.compile(r"Finished app \(elapsed=([\d.]+)s\)")
_ERROR: Final = re.compile(r"^[\w.]+(?:Error|Exception|Interrupt)\b.*", re.MULTILINE)
"""The last line of a traceback."""


def command(executor: str, application: tuple[str, ...]) -> list[str]:
    """Return the command that runs an application on an executor."""
    return [
        sys.executable, "-m", "bench.peers.taps", *(application or CHOLESKY),
        "--engine.executor", executor, f"--engine.executor.{WORKERS_OPTION[executor]}", str(WORKERS),
        "--run.dir-format", str(RUNS),
    ]  # fmt: skip


def seconds(command: list[str], timeout_s: float) -> float:
    """Run a command of TaPS, and return how long the application took.

    Raises:
        Failed: It ended with another exit code than 0, did not finish the application, or took too long.
    """
    with new_folder() as folder:
        code = exit_code(command, folder, timeout_s, cwd=Path.cwd())
        finished = _FINISHED.search((folder / "said").read_text(errors="replace"))
        if code == 0 and finished:
            return float(finished[1])
        raise Failed(f"exit code {code}, {'no result' if finished is None else 'after its result'}: {_reason(folder)}")


def _reason(folder: Path) -> str:
    """Return the last error. TaPS logs it to its standard output, and libraries may log other lines after it."""
    for name in ("said", "log"):
        errors = _ERROR.findall((folder / name).read_text(errors="replace"))
        if errors:
            return str(errors[-1])[:LONGEST_REASON]
    return last_line(folder / "log")


@click.command()
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(0, min_open=True), default=600.0, show_default=True,
    help="Seconds for one executor.",
)  # fmt: skip
@click.argument("application", nargs=-1, type=click.UNPROCESSED)
def main(*, timeout_s: float, application: tuple[str, ...]) -> None:
    """Run an application of TaPS on each executor in turn. Exit code 1: the pool failed.

    After `--`, APPLICATION has the options of TaPS that choose it, such as --app synthetic. By default it is cholesky.
    """
    failed = set()
    for executor in WORKERS_OPTION:
        try:
            click.echo(f"{executor}: {seconds(command(executor, application), timeout_s):.2f} s")
        except Failed as error:
            failed.add(executor)
            click.echo(f"{executor}: failed: {error}")
    sys.exit(1 if OURS in failed else 0)


if __name__ == "__main__":
    main()
