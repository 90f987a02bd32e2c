"""Workers that are started with an endpoint, as on an instance of the fleet."""

import subprocess
import sys
from pathlib import Path
from typing import Self

import psutil

from support.command import environment
from support.processes import stop
from support.waiting import HANG_S, until

from .deployment import Deployment


class Worker:
    """`cloudpar worker` with one executor that is ready.

    Args:
        deployment: Its master.
        log: The file for its messages.
        isolation: See `cloudpar worker --help`.
        python: The interpreter of the worker, and of its executors.
        variables: More variables of its environment.
    """

    def __init__(
        self, deployment: Deployment, log: Path, isolation: str = "none", python: str = sys.executable, **variables: str
    ) -> None:
        self._log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [
                    python, "-m", "cloudpar", "worker", "--endpoint", deployment.endpoint, "--executors", "1",
                    "--isolation", isolation,
                ],
                env=environment(CLOUDPAR_WORKER_TOKEN=deployment.worker_token, **variables), stderr=file,
            )  # fmt: skip
        until(self._ready)

    def _ready(self) -> bool:
        assert self.process.poll() is None, self.log()
        return "working for" in self.log()

    def log(self) -> str:
        return self._log.read_text(errors="replace")

    def agent(self) -> psutil.Process:
        """Return the process that talks to the master."""
        children = psutil.Process(self.process.pid).children()
        return next(child for child in children if "cloudpar_worker" in child.cmdline())

    def executor(self) -> psutil.Process:
        """Return the process that runs tasks."""
        (zygote,) = self.agent().children()
        (executor,) = zygote.children()
        return executor

    def kill(self) -> None:
        """End all processes at once, as when an instance is switched off: no lease is given back."""
        command = psutil.Process(self.process.pid)  # killed first: it would restart the agent
        family = [command, *command.children(recursive=True)]
        for each in family:
            each.kill()
        self.process.wait(HANG_S)
        psutil.wait_procs(family, HANG_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)
