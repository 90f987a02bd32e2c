"""The agent's settings: one JSON line on its standard input."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import psutil
from msgspec import Meta, Struct

from cloudpar_protocol.limits import EXECUTORS
from cloudpar_protocol.nesting import OwnPool
from cloudpar_protocol.payloads import Threads
from cloudpar_worker.sandbox.confinement import Confinement

_MEMORY_PART = 0.9
"""If the settings give no memory limit, executors share this part of the memory. The rest is for the system, the agent
and the zygotes.
"""
_CGROUPS: Final = Path("/sys/fs/cgroup")
_CGROUP_LIMITS: Final = ("memory.max", "memory/memory.limit_in_bytes")
"""The files with the memory limit in control groups of version 2 and of version 1."""


class WorkerSettings(Struct, frozen=True, kw_only=True):
    """The agent's settings.

    Attributes:
        endpoint: The master's URL, "http://host:port".
        token: A worker token.
        executors: The number of tasks that run at a time.
        pool_token: The account token of the pool that started this worker, so that `Pool()` in a task joins this pool.
            None if no pool started the worker. With isolation "shared" the token is ignored.
        payload_folder: The master's payload folder, if one pool has started the master and this worker; otherwise None.
        memory_mb: The memory limit of one executor, in MB. None means 90 % of the memory of this machine, or of the
            container in which the agent runs, divided by `executors`.
        threads_per_task: The number of threads that numeric libraries may start in a task whose package sets no limit.
            None means the limit that the agent's environment sets, or 1.
        tmp: The folder for executors' temporary files; None means the system's folder.
        pythons: More interpreters for executors, such as {"3.12": "/path/python"}. Each must have `cloudpar_worker`
            installed.
        isolation: With "own" the worker runs tasks of the master's default account, and with "none" tasks of all
            accounts. In both cases tasks have the rights of the user who started the worker. With "shared" the worker
            runs tasks of all accounts, and confines them.
        readable, writable: Only for isolation "shared": files and folders that tasks may read (`readable`), or may also
            change (`writable`), besides the system's files and the tasks' own files.
        network: Only for isolation "shared". With "outbound" tasks use the network of the machine. With "none" each
            executor has a network of its own with nothing but a loopback interface.
        processes, file_mb: Only for isolation "shared": the limit of processes and threads of one executor, and the
            limit of one file's size in MB.
        signs: A folder for the files of signs.py, which show the machine what the worker does. None means no files.

    Raises:
        ValueError: An interpreter in `pythons` does not exist or cannot be run, or `network` is "none" although
            `isolation` is not "shared".
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
    isolation: Literal["own", "none", "shared"] = "own"
    readable: list[str] = []
    writable: list[str] = []
    network: Literal["outbound", "none"] = "outbound"
    processes: Annotated[int, Meta(ge=1)] = 512
    file_mb: Annotated[int, Meta(ge=1)] = 16 << 10
    signs: str | None = None

    def __post_init__(self) -> None:
        for version, path in self.pythons.items():
            if not os.access(path, os.X_OK):
                raise ValueError(f"there is no interpreter {path}, which pythons has for Python {version}")
        if self.network == "none" and self.isolation != "shared":
            # If the agent ignored the setting, tasks could use the network that the operator has forbidden.
            raise ValueError('network "none" needs isolation "shared": otherwise nothing confines tasks')

    @property
    def interpreters(self) -> dict[str, str]:
        """The interpreters for executors, by version. The agent's own version comes first.

        Executors of the agent's version run on the agent's interpreter, unless `pythons` names another one for that
        version.
        """
        return {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable} | self.pythons

    @property
    def own_pool(self) -> OwnPool | None:
        """The pool that started this worker, which `Pool()` in a task joins.

        None if no pool started it, or if isolation is "shared".
        """
        if self.pool_token is None or self.isolation == "shared":
            return None
        return OwnPool(self.endpoint, self.pool_token)

    @property
    def confinement(self) -> Confinement | None:
        """The settings that confine executors; None unless isolation is "shared".

        Only the agent may read this property: the result protects the process that reads it, and the parent of this
        process, from signals of tasks.
        """
        if self.isolation != "shared":
            return None
        return Confinement(
            tmp=self.tmp or tempfile.gettempdir(),
            executors=self.executors,
            readable=self.readable,
            writable=self.writable,
            network=self.network,
            # The parent's id is 0 if it runs outside this container; 0 is not the id of a process.
            protected=sorted({os.getpid(), os.getppid(), os.getpgrp()} - {0}),
            processes=self.processes,
            file_bytes=self.file_mb << 20,
            memory_bytes=self.memory_bytes,
        )

    @property
    def memory_bytes(self) -> int:
        """The memory limit of one executor."""
        if self.memory_mb is not None:
            return self.memory_mb << 20
        return int(machine_memory_bytes() * _MEMORY_PART / self.executors)


def machine_memory_bytes(cgroups: Path = _CGROUPS) -> int:
    """Return the memory of this machine, or the limit of this process's container if the limit is smaller."""
    total = psutil.virtual_memory().total
    for name in _CGROUP_LIMITS:
        try:
            total = min(total, int((cgroups / name).read_text()))
        except (OSError, ValueError):  # the file is missing, or it contains "max"
            continue
    return total


def parse(line: bytes) -> WorkerSettings:
    """Parse the settings.

    Raises:
        ValueError: The line is not a JSON object, or a setting is not valid; the error then names the setting.
    """
    try:
        return msgspec.json.decode(line, type=WorkerSettings)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"the first line on standard input must be JSON with endpoint, token and executors: {error}"
        ) from None
