"""A master and workers as processes of this machine, started and ended by the commands that an operator types."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from cloudpar import Pool

CLOUDPAR = [sys.executable, "-m", "cloudpar"]


class Cluster:
    """A master on a data folder of its own, and workers that come and go."""

    def __init__(self, folder: Path) -> None:
        self._up = subprocess.Popen(
            [*CLOUDPAR, "up", "--workers", "0", "--port", "0", "--data", str(folder), "--json"],
            stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self._workers: list[subprocess.Popen[bytes]] = []
        if self._up.stdout is None or not (line := self._up.stdout.readline()):
            raise SystemExit("the master did not start; it says why above")
        self._connection: dict[str, str] = json.loads(line)

    def pool(self) -> Pool:
        """A pool whose tasks run on these workers."""
        return Pool(self._connection["endpoint"], self._connection["token"])

    def add_worker(self, executors: int = 1) -> None:
        """Start one more worker. Its tasks find its number, from 1 on, in their environment as WORKER."""
        number = str(len(self._workers) + 1)
        environment = os.environ | {"CLOUDPAR_WORKER_TOKEN": self._connection["worker_token"], "WORKER": number}
        address = ["--endpoint", self._connection["endpoint"]]
        command = [*CLOUDPAR, "worker", *address, "--executors", str(executors), "--isolation", "own"]
        # Its own session: Ctrl-C is for this program, which ends its workers in good order.
        self._workers.append(
            subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL)
        )

    def kill_worker(self, number: int) -> None:
        """End a worker at once, as when its machine fails. Other workers run its tasks again."""
        self._workers[number - 1].kill()

    def drain_worker(self, number: int) -> None:
        """Ask a worker to leave. It finishes the tasks that it runs, and gives back the others."""
        self._workers[number - 1].terminate()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (*self._workers, self._up):
            process.terminate()
        for process in (*self._workers, self._up):
            process.wait()
        if self._up.stdout is not None:
            self._up.stdout.close()
