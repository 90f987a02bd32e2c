"""An agent in a process of its own."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, Any

import psutil

from support.waiting import until

TOKEN = "worker-token-for-tests"


class RunningAgent:
    """An agent process. `log` is what it wrote to standard error."""

    def __init__(
        self,
        endpoint: str,
        *,
        executors: int = 2,
        environment: dict[str, str] | None = None,
        command: Sequence[str] = ("-m", "cloudpar_worker", "--stdin"),
        python: str = sys.executable,
        user: int | None = None,
        **more: Any,
    ) -> None:
        self.process = subprocess.Popen(
            [python, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ) | (environment or {}),
            user=user,
            group=user,
            extra_groups=None if user is None else [],
        )
        assert self.process.stdin
        assert self.process.stdout
        assert self.process.stderr
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout
        self._stderr: IO[bytes] = self.process.stderr
        self._lines: list[bytes] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        settings = {"endpoint": endpoint, "token": TOKEN, "executors": executors, "isolation": "none"} | more
        self.stdin.write(json.dumps(settings).encode() + b"\n")
        self.stdin.flush()

    def _read(self) -> None:
        self._lines.extend(self._stderr)

    @property
    def log(self) -> str:
        return b"".join(self._lines).decode()

    def wait_until_ready(self) -> "RunningAgent":
        assert json.loads(self.stdout.readline()) == {"event": "ready"}, self.log
        return self

    def descendants(self) -> list[psutil.Process]:
        """The zygotes, the executors, and the processes that tasks started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def zygotes(self) -> set[psutil.Process]:
        """The processes from which executors are forked."""
        return set(psutil.Process(self.process.pid).children())

    def kill_zygote(self, zygote: psutil.Process) -> None:
        """Kill a zygote, and wait until the agent has noticed it.

        Until then its executors may still run tasks that arrive, so that no other zygote would be needed.
        """
        zygote.kill()
        until(lambda: not psutil.pid_exists(zygote.pid))  # the agent has reaped it

    def wait(self) -> int:
        code = self.process.wait(timeout=20)
        self._reader.join()
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        for stream in (self.stdin, self.stdout, self._stderr):
            stream.close()
