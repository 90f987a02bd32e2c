"""Runs a measurement in a process of its own, and ends it with all that it has started if it takes too long."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .engines import OFFLINE
from .processes import end_descendants
from .rows import Load

ROOT: Final = Path(__file__).parents[2]
LONGEST_REASON: Final = 200
"""How many characters of an error are shown."""


class Failed(Exception):
    """A measurement that gave no figures. Its text is the reason."""


def measure(engine: str, row: str, load: Load, timeout_s: float) -> dict[str, float]:
    """Return a row's figures of one engine.

    Raises:
        Failed: The engine cannot be imported, raised an error, crashed or took too long.
    """
    command = [sys.executable, "-m", "bench.peers.run", engine, row, *load.as_arguments()]
    with new_folder() as folder:
        return _figures(folder, exit_code(command, folder, timeout_s, cwd=folder))


def _figures(folder: Path, code: int) -> dict[str, float]:
    try:
        said = json.loads((folder / "said").read_bytes())
    except ValueError:
        raise Failed(f"the process ended with exit code {code}: {last_line(folder / 'log')}") from None
    if "error" in said:
        raise Failed(" ".join(said["error"].split())[:LONGEST_REASON])
    return {name: float(value) for name, value in said["figures"].items()}


def exit_code(command: list[str], folder: Path, timeout_s: float, *, cwd: Path) -> int:
    """Run a command to its end. What it prints is in the folder's files `said` and `log` (standard error).

    Raises:
        Failed: It took too long. All its processes have been ended.
    """
    with (folder / "said").open("wb") as out, (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment(folder), stdin=subprocess.DEVNULL, stdout=out, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"no result after {timeout_s:g} s") from None
        finally:
            end(process)


def last_line(file: Path) -> str:
    """Return the last line of an output, which most often says why a process has failed."""
    lines = file.read_text(errors="replace").split("\n")
    return next((line.strip()[-LONGEST_REASON:] for line in reversed(lines) if line.strip()), "it printed nothing")


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all its descendants.

    The process is stopped first: it can start no others then, and as long as it exists, it is the parent of those whose
    own parents are killed.
    """
    if process.poll() is None:
        process.send_signal(signal.SIGSTOP)
        end_descendants(process.pid)
        process.kill()
    process.wait()


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a measurement: it finds this checkout's modules, and writes only into its folder.

    The interpreter's own folder is first in the PATH, because Parsl starts its processes by the name of a script.
    """
    paths = [ROOT, *(Path(path).absolute() for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path)]
    return os.environ | OFFLINE | {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "HOME": str(folder),
        "TMPDIR": str(folder),
    }  # fmt: skip


@contextmanager
def new_folder() -> Iterator[Path]:
    """Yield a new folder. Its path is short, because Ray makes sockets in it, whose paths have at most 107 bytes.

    All users may enter it, because the pool runs tasks as users of their own if it may.
    """
    short = Path("/tmp")  # noqa: S108 - mkdtemp makes a new folder there
    folder = Path(tempfile.mkdtemp(prefix="peers-", dir=short if short.is_dir() else None))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
