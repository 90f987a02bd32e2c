"""`cloudpar up` and `cloudpar worker` in processes of their own."""

import json
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Self

import psutil

from cloudpar import Pool
from cloudpar_worker.core.decisions import GIVE_UP_US
from support.command import CLOUDPAR, environment
from support.operated import Operated
from support.processes import UNREAD_BYTES, stop
from support.waiting import HANG_S


class Up(Operated):
    """`cloudpar up --json` on a free port.

    Its worker runs tasks of all accounts, since many tests have several; `isolation` None leaves the default.
    """

    def __init__(
        self, folder: Path, workers: int, port: int = 0, more: Sequence[str] = (), errors: IO[str] | None = None,
        *, program: Sequence[str] = CLOUDPAR, isolation: str | None = "none",
    ) -> None:  # fmt: skip
        self.folder = folder
        more = [*more, *(("--isolation", isolation) if isolation and workers else ())]
        self.process = subprocess.Popen(
            [*program, "up", "--workers", str(workers), "--port", str(port), "--data", str(folder), "--json", *more],
            env=environment(), stdout=subprocess.PIPE, stderr=errors or subprocess.PIPE, text=True,
            pipesize=UNREAD_BYTES,
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.connection: dict[str, str] = json.loads(line)
        self.endpoint = self.connection["endpoint"]
        self.admin_token = self.connection["admin_token"]

    def pool(self) -> Pool:
        """Open a pool of the default account."""
        return Pool(self.endpoint, self.connection["token"], progress=False)

    def user(self) -> list[str]:
        """The options of the default account."""
        return ["--endpoint", self.endpoint, "--token", self.connection["token"]]

    def child(self, module: str) -> psutil.Process:
        """Return the process that runs `python -m module`."""
        return next(child for child in psutil.Process(self.process.pid).children() if module in child.cmdline())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; returns the exit code and standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)


@contextmanager
def worker(
    up: Up, executors: int = 1, *more: str, endpoint: str | None = None, **variables: str
) -> Iterator["subprocess.Popen[str]"]:
    """Start `cloudpar worker` and wait until it is ready. `endpoint` is another address of the master."""
    process = subprocess.Popen(
        [
            *CLOUDPAR, "worker", "--endpoint", endpoint or up.endpoint, "--executors", str(executors),
            "--isolation", "none", *more,
        ],
        env=environment(CLOUDPAR_WORKER_TOKEN=up.connection["worker_token"], **variables),
        stderr=subprocess.PIPE, text=True, pipesize=UNREAD_BYTES,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        assert "working for" in process.stderr.readline()
        yield process
    finally:
        # If the master ended first, perhaps before it answered the worker's last results, the drain waits for it.
        stop(process, GIVE_UP_US / 1e6 + HANG_S)
