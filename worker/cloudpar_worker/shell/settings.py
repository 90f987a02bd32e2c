"""How an agent is started: one JSON line on its standard input."""

import os
import sys
import tempfile
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from cloudpar_protocol.limits import EXECUTORS
from cloudpar_protocol.nesting import OwnPool
from cloudpar_protocol.payloads import Threads
from cloudpar_worker.sandbox.confinement import Confinement

from .machine import memory_bytes

_MEMORY_PART = 0.9


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """What the agent is told.

    Attributes:
        endpoint: The master, "http://host:port".
        token: A worker token.
        executors: How many tasks run at a time.
        pool_token: Of the account whose pool has started this worker for itself: `Pool()` in a task is that pool.
        payload_folder: Where the master keeps payloads as files, if the same pool has started it.
        memory_mb: The limit of one executor; None: 90 % of the memory here, divided by the executors.
        threads_per_task: How many threads numeric libraries may start in a task whose package does not say it; None: as
            the environment says, or 1.
        tmp: Where executors put temporary files; None: the system's place.
        pythons: More interpreters for executors, {"3.12": "/path/python"}, each with this package installed.
        isolation: "own": tasks are of whoever started this worker, and may do what that user may; "shared": they are
            of several people, and are confined.
        readable, writable: In a shared pool: files and folders that tasks may use besides the system's and their own.
        processes, file_mb: In a shared pool: the limits of one executor for processes with their threads, and for the
            size of one file.
    """

    endpoint: Annotated[str, Meta(pattern="^https?://")]
    token: str
    executors: Annotated[int, Meta(ge=1, le=EXECUTORS)]
    pool_token: str | None = None
    payload_folder: str | None = None
    memory_mb: Annotated[int, Meta(ge=1)] | None = None
    threads_per_task: Threads | None = None
    tmp: str | None = None
    pythons: dict[Annotated[str, Meta(pattern=r"^3\.\d+$")], str] = {}
    isolation: Literal["own", "shared"] = "own"
    readable: list[str] = []
    writable: list[str] = []
    processes: Annotated[int, Meta(ge=1)] = 512
    file_mb: Annotated[int, Meta(ge=1)] = 16 << 10

    def __post_init__(self) -> None:
        for version, path in self.pythons.items():
            if not os.access(path, os.X_OK):
                raise ValueError(f"there is no interpreter {path}, which pythons has for Python {version}")

    @property
    def interpreters(self) -> dict[str, str]:
        """The interpreters for executors by version; the agent's own comes first."""
        return {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable} | self.pythons

    @property
    def own_pool(self) -> OwnPool | None:
        """The pool that has started this worker for itself; None if its tasks may be anybody's."""
        if self.pool_token is None or self.isolation == "shared":
            return None
        return OwnPool(self.endpoint, self.pool_token)

    @property
    def confinement(self) -> Confinement | None:
        """Of the executors, if the pool is shared. To be asked in the agent: it names itself as not to be signalled."""
        if self.isolation == "own":
            return None
        return Confinement(
            tmp=self.tmp or tempfile.gettempdir(),
            executors=self.executors,
            readable=self.readable,
            writable=self.writable,
            # Whose parent is of another container has 0 for it, which is no process.
            protected=sorted({os.getpid(), os.getppid(), os.getpgrp()} - {0}),
            processes=self.processes,
            file_bytes=self.file_mb << 20,
        )

    @property
    def memory_bytes(self) -> int:
        """The limit of one executor."""
        if self.memory_mb is not None:
            return self.memory_mb << 20
        return int(memory_bytes() * _MEMORY_PART / self.executors)


def parse(line: bytes) -> WorkerSettings:
    """The settings from their line.

    Raises:
        ValueError: It is not such a line; the text names the field.
    """
    try:
        return msgspec.json.decode(line, type=WorkerSettings)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"the first line on standard input must be JSON with endpoint, token and executors: {error}"
        ) from None
