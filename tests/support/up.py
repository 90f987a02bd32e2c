"""Runs the command line in processes of its own."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import psutil

from cloudpar import Pool
from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts

CLOUDPAR = [sys.executable, "-m", "cloudpar"]
END_S = 60.0
"""A time that only a hanging process exceeds."""


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without the user's configuration of Cloud Parallelizer."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CLOUDPAR_")} | more


def cloudpar(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*CLOUDPAR, *arguments], env=environment(**more), capture_output=True, text=True, check=False, timeout=END_S
    )


def cloudpar_json(*arguments: str) -> Any:
    """Run a command that succeeds, and return the JSON object that it prints."""
    ended = cloudpar(*arguments, "--json")
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    assert ended.stdout.count("\n") == 1
    return json.loads(ended.stdout)


def pipe(path: Path) -> str:
    """Make a named pipe: opening one of its ends waits for the other."""
    os.mkfifo(path)
    return str(path)


def pass_gate(running: str, gate: str) -> str:
    """Report that this task runs, and end when the test writes to the gate."""
    Path(running).write_text("running")
    return Path(gate).read_text()


class Up:
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
        )  # fmt: skip
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()
        self.connection: dict[str, str] = json.loads(line)
        self.endpoint = self.connection["endpoint"]

    def pool(self) -> Pool:
        """Open a pool of the default account."""
        return Pool(self.endpoint, self.connection["token"], progress=False)

    def admin(self) -> list[str]:
        """The options of an operator."""
        return ["--endpoint", self.endpoint, "--admin-token", self.connection["admin_token"]]

    def user(self) -> list[str]:
        """The options of the default account."""
        return ["--endpoint", self.endpoint, "--token", self.connection["token"]]

    def accounts(self) -> list[Account]:
        """Return all accounts that the operator sees."""
        connection = Connection(self.endpoint, self.connection["admin_token"], RetryPolicy(END_S))
        try:
            return connection.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
        finally:
            connection.close()

    def child(self, module: str) -> psutil.Process:
        """Return the process that runs `python -m module`."""
        return next(child for child in psutil.Process(self.process.pid).children() if module in child.cmdline())

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal; returns the exit code and standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=END_S)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise


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
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        assert "working for" in process.stderr.readline()
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=END_S)
