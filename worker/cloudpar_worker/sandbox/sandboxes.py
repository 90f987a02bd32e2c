"""Where the executors of a shared pool are confined: each has a cell, which is emptied before anybody has its user."""

import os
import resource
import secrets
import tempfile
from collections.abc import Collection
from glob import glob
from typing import Final

from . import cleanup, interpreter, kernel, syscall_filter, uid_pool
from .confinement import Confinement
from .landlock import Ports, Rules
from .orphans import die_with_parent, hide_memory, show_memory
from .processes import processes
from .uid_pool import Users

_FILES: Final = 8_192
_NAME: Final = "cloudpar"
"""An executor's user has none, and libraries ask for one, to name their caches (`getpass.getuser`)."""

SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the system's
_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/proc", "/sys",
    "/dev/random", "/dev/urandom",
)  # fmt: skip
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/nvidia*", "/dev/dri", "/dev/kfd")


class Cell:
    """One executor's.

    Attributes:
        folder: Its private one, which the executor makes.
        user: Its own; None: it has that of the zygote.
    """

    def __init__(self, folder: str, user: int | None) -> None:
        self.folder = folder
        self.user = user


class Cells:
    """Makes cells and empties them.

    Args:
        settings: What holds for all of them.
        executors: The zygote's children that are executors, by process id.
    """

    def __init__(self, settings: Confinement, executors: Collection[int]) -> None:
        self._settings = settings
        self._executors = executors
        self._places = [settings.tmp, SHARED_MEMORY, "/var/tmp"]  # noqa: S108 - where anybody may leave files
        self._users = Users(self._places) if uid_pool.are_there(settings.tmp) else None
        self._processes = settings.processes
        if self._users is None:  # the limit counts all that the user has
            self._processes = settings.processes * settings.executors + sum(
                process.threads for process in processes() if process.user == os.getuid()
            )
        self._rules = _rules(settings, shared_memory=self.own_users)
        self._ports = Ports(settings.closed_ports)
        self._filter = b""
        if syscall_filter.is_there():
            protected = [*settings.protected, os.getpid()]
            self._filter = syscall_filter.program(protected, unix_sockets=self.own_users)
        self._left: list[Cell] = []
        self._emptying: dict[int, Cell] = {}
        """By the process that does it."""
        kernel.adopt_orphans()

    def take(self) -> Cell:
        """One for an executor that is about to be forked.

        Raises:
            OSError: No user is free.
        """
        folder = os.path.join(self._settings.tmp, f"cloudpar-executor-{secrets.token_hex(8)}")  # noqa: PTH118 - pathlib would be imported for this alone
        return Cell(folder, self._users.take() if self._users else None)

    def cancel(self, cell: Cell) -> None:
        """It was not needed."""
        if cell.user is not None and self._users is not None:
            self._users.give_back(cell.user, spotless=True)

    def enter(self, cell: Cell, parent: int) -> None:
        """In the executor: be its user, with nothing but its folder. There is no way back.

        Raises:
            OSError: Something stays of whoever had its user before: then this executor is none.
        """
        if cell.user is not None:
            kernel.become(cell.user)
            # Of a zygote that was killed something may be left: its user is free, and nobody else has emptied its cell.
            cleanup.end_processes()
            if not cleanup.remove_from(self._places):
                raise OSError("what was left of an executor with the same user cannot be removed")
        else:
            kernel.set_capabilities(0, 0, 0)
        die_with_parent(parent)  # again: the kernel forgets it when the user changes
        os.umask(0o077)
        os.mkdir(cell.folder)  # noqa: PTH102
        os.chdir(cell.folder)
        os.environ |= {"TMPDIR": cell.folder, "HOME": cell.folder, "LOGNAME": _NAME, "USER": _NAME}
        tempfile.tempdir = None
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_NOFILE, _FILES)
        _limit(resource.RLIMIT_FSIZE, self._settings.file_bytes)
        _limit(resource.RLIMIT_NPROC, self._processes)
        kernel.no_new_privileges()
        if cell.user is None:
            kernel.adopt_orphans()  # so that they are the zygote's only once this executor has ended
        self._rules.restrict([cell.folder])
        self._ports.restrict()
        if self._filter:
            syscall_filter.install(self._filter)
        if cell.user is None:
            hide_memory()
        else:
            show_memory()  # to its user alone, for weighing: the change of users had hidden it

    def leave(self, cell: Cell) -> None:
        """Its executor has ended: `empty` lets nothing of it stay."""
        self._left.append(cell)

    def ended(self, pid: int, status: int) -> None:
        """A child that is no executor has ended."""
        cell = self._emptying.pop(pid, None)
        if cell is not None and cell.user is not None and self._users is not None:
            self._users.give_back(cell.user, spotless=status == 0)

    @property
    def own_users(self) -> bool:
        """Whether each executor has one."""
        return self._users is not None

    @property
    def waiting(self) -> bool:
        """Whether `empty` has yet to begin with something."""
        return bool(self._left)

    @property
    def emptying(self) -> bool:
        """Whether something is still being removed."""
        return bool(self._emptying or self._left)

    def empty(self) -> None:
        """Begin to, if there is something; to be called again when more children have ended, and while it waits."""
        if not self._left or (self._users is None and cleanup.end_orphans({*self._executors, *self._emptying})):
            return
        while self._left:
            cell = self._left[-1]
            try:
                pid = os.fork()
            except OSError:  # tasks have taken all processes or all memory: there will be some again
                return
            if pid:
                self._emptying[pid] = self._left.pop()
                continue
            spotless = False
            try:
                spotless = self._clear(cell)
            finally:
                os._exit(0 if spotless else 1)

    def _clear(self, cell: Cell) -> bool:
        """In a process of its own: a task may have left a great many files."""
        if cell.user is None:
            return cleanup.remove(cell.folder)
        kernel.act_as(cell.user, uid_pool.guard_of(cell.user))
        cleanup.end_processes()
        removed = cleanup.remove(cell.folder)
        return cleanup.remove_from(self._places) and removed


def _rules(settings: Confinement, *, shared_memory: bool) -> Rules:
    resolver = os.path.dirname(os.path.realpath("/etc/resolv.conf"))  # noqa: PTH120
    devices = [path for pattern in _DEVICES for path in glob(pattern)]  # noqa: PTH207
    # In shared memory one executor of a user would find what another left.
    common = [SHARED_MEMORY] if shared_memory else []
    return Rules(
        [*_SYSTEM, *interpreter.folders(), resolver, *settings.readable], [*devices, *common, *settings.writable]
    )


def _limit(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (most, most))
