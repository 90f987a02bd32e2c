"""Workers that are started with an endpoint, as on an instance of the fleet."""

import subprocess
from pathlib import Path
from typing import Self

import psutil

from support.command import CLOUDPAR, environment
from support.processes import stop
from support.waiting import HANG_S, until
from worker.isolation.shared import imports_for

from .deployment import Deployment


class Worker:
    """`cloudpar worker` with one executor that is ready.

    Args:
        deployment: Its master.
        log: The file for its messages.
        python: If given, the worker is shared, and its executors have users of their own, which may run this Python.
    """

    def __init__(self, deployment: Deployment, log: Path, python: str | None = None) -> None:
        self._log = log
        command = CLOUDPAR if python is None else [python, "-m", "cloudpar"]
        isolation = "none" if python is None else "shared"
        imports = {} if python is None else imports_for(python)
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "worker", "--endpoint", deployment.endpoint, "--executors", "1", "--isolation", isolation],
                env=environment(CLOUDPAR_WORKER_TOKEN=deployment.worker_token, **imports), stderr=file,
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
