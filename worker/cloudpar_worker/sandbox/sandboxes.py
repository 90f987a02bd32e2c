"""Makes a sandbox for each executor of a shared worker, and cleans it up before another executor gets its user id."""

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Collection
from glob import glob
from typing import Final, NamedTuple

from . import cleanup, kernel, limits, shared_memory, syscall_filter, uid_pool
from .confinement import Confinement
from .kernel import die_with_parent, hide_memory, show_memory
from .landlock import FileRules, PortRules
from .namespaces import Namespaces
from .processes import processes
from .shared_memory import SHARED_MEMORY
from .uid_pool import UidPool

_NAME: Final = "cloudpar"
"""The user name that executors get, because their user ids have no name. Libraries use the user name (`getuser`) in the
names of their caches.
"""

RETRY_S: Final = 60.0
"""The zygote repeats a cleanup that failed after this many seconds."""
_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/proc", "/sys",
    "/dev/random", "/dev/urandom",
)  # fmt: skip
_DEVICES: Final = ("/dev/null", "/dev/full", "/dev/nvidia*", "/dev/dri", "/dev/kfd")
"""Without /dev/zero: a shared mapping of it is shared memory without a file, which `syscall_filter` refuses."""


class Sandbox(NamedTuple):
    """The sandbox of one executor.

    Attributes:
        folder: The path of the executor's private folder, which the executor makes itself.
        uid: The executor's own user id; None if the executor has the user id of the zygote.
        shared_memory: A descriptor of the executor's own file system at SHARED_MEMORY; None if it has none.
    """

    folder: str
    uid: int | None
    shared_memory: int | None = None


class Sandboxes:
    """Makes sandboxes and cleans them up.

    Args:
        settings: The settings for all sandboxes.
        executors: The process ids of the zygote's children that are executors. The zygote keeps this collection up to
            date.

    Attributes:
        own_shared_memory: Whether each executor has a file system of its own for shared memory.
    """

    def __init__(self, settings: Confinement, executors: Collection[int]) -> None:
        self._settings = settings
        self._executors = executors
        self._places = [settings.tmp, SHARED_MEMORY, "/var/tmp"]  # noqa: S108 - all users may write into them
        self._uids = None if uid_pool.obstacle(settings.tmp) else UidPool(self._places)
        self._processes = settings.processes
        if self._uids is None:  # the kernel compares all processes of the user with the limit
            there = sum(process.threads for process in processes() if process.user == os.getuid())
            self._processes = limits.shared_processes(settings.processes * settings.executors + there)
        self._namespaces = Namespaces(network=settings.network == "outbound")
        self.own_shared_memory = self.own_uids and shared_memory.own_is_possible()
        self._descriptors: set[int] = set()
        """The descriptors of the executors' own file systems."""
        # Without user ids of their own, executors of different accounts could use each other's files in shared memory.
        self._rules = _rules(settings, common_memory=self.own_uids and not self.own_shared_memory)
        self._ports = PortRules(settings.closed_ports)
        self._filter = b""
        if syscall_filter.available():
            protected = [*settings.protected, os.getpid()]
            self._filter = syscall_filter.program(protected, own_user=self.own_uids)
        self._to_clean: list[Sandbox] = []
        self._cleaning: dict[int, Sandbox] = {}
        """The sandboxes that are being cleaned up, by the id of the process that cleans up."""
        self._unclean: list[tuple[float, Sandbox]] = []
        """Sandboxes whose cleanup failed, each with the time of the next attempt."""
        kernel.adopt_orphans()

    def create(self) -> Sandbox:
        """Make a sandbox for an executor that is about to be forked.

        Raises:
            OSError: No user id is free, or the kernel refuses to make a file system.
        """
        folder = os.path.join(self._settings.tmp, f"cloudpar-executor-{secrets.token_hex(8)}")
        memory = shared_memory.make(self._settings.memory_bytes) if self.own_shared_memory else None
        try:
            sandbox = Sandbox(folder, self._uids.take() if self._uids else None, memory)
        except OSError:
            if memory is not None:
                os.close(memory)
            raise
        if memory is not None:
            self._descriptors.add(memory)
        return sandbox

    def discard(self, sandbox: Sandbox) -> None:
        """Take back a sandbox that no executor has entered."""
        self._close(sandbox)
        if sandbox.uid is not None and self._uids is not None:
            self._uids.give_back(sandbox.uid)

    def _close(self, sandbox: Sandbox) -> None:
        """Let the executor's own file system end, as soon as no process uses it."""
        if sandbox.shared_memory is not None:
            self._descriptors.remove(sandbox.shared_memory)
            os.close(sandbox.shared_memory)

    def enter(self, sandbox: Sandbox, parent: int) -> None:
        """Confine this process, an executor, for good: take the sandbox's user id, if it has one, and apply all rules.

        Raises:
            OSError: Something remains of an earlier executor with this user id, or the kernel refuses a step. The
                executor must not start.
        """
        self._namespaces.enter_before_user()
        if sandbox.shared_memory is not None:
            shared_memory.enter(sandbox.shared_memory)
        if sandbox.uid is not None:
            kernel.become(sandbox.uid)
            # A killed zygote may have left processes and files of this user id behind. Without this cleanup, the
            # executor's tasks could read files of another account, and processes of that account could read the
            # executor's memory.
            cleanup.kill_own_processes()
            if not cleanup.remove_from(self._places):
                raise OSError("files of an earlier executor with the same user id cannot be removed")
        else:
            kernel.set_capabilities(0, 0, 0)
        self._namespaces.enter_as_user()
        die_with_parent(parent)  # again, because the kernel drops this setting when the user changes
        os.umask(0o077)
        os.mkdir(sandbox.folder)
        os.chdir(sandbox.folder)
        os.environ |= {"TMPDIR": sandbox.folder, "HOME": sandbox.folder, "LOGNAME": _NAME, "USER": _NAME}
        tempfile.tempdir = None
        limits.limit_executor(processes=self._processes, file_bytes=self._settings.file_bytes)
        # The order below is necessary. Landlock and seccomp need a process that cannot gain privileges. The seccomp
        # filter refuses Landlock's own calls, so Landlock's rules come before the filter.
        kernel.no_new_privileges()
        if sandbox.uid is None:
            kernel.adopt_orphans()  # otherwise orphans would become children of the zygote, which kills orphans
        self._rules.restrict([sandbox.folder] if sandbox.shared_memory is None else [sandbox.folder, SHARED_MEMORY])
        self._ports.restrict()
        if self._filter:
            syscall_filter.install(self._filter)
        if sandbox.uid is None:
            hide_memory()
        else:
            show_memory()  # the change of the user has hidden the memory, but a process of this user must measure it

    def left(self, sandbox: Sandbox) -> None:
        """Record that the executor of a sandbox has ended, so that `clean_up` removes what the executor left."""
        self._close(sandbox)
        self._to_clean.append(sandbox)

    def ended(self, pid: int, status: int) -> None:
        """Handle the end of a child that is not an executor. After a complete cleanup, give back the user id."""
        sandbox = self._cleaning.pop(pid, None)
        if sandbox is None:
            return
        if status:
            left = f"cloudpar: not all that an executor left in {sandbox.folder} and {self._places} could be removed"
            print(f"{left}: trying again in {RETRY_S:.0f} s", file=sys.stderr, flush=True)
            self._unclean.append((time.monotonic() + RETRY_S, sandbox))
        elif sandbox.uid is not None and self._uids is not None:
            self._uids.give_back(sandbox.uid)

    @property
    def own_uids(self) -> bool:
        """Whether each executor has a user id of its own."""
        return self._uids is not None

    @property
    def waiting(self) -> bool:
        """Whether sandboxes wait for `clean_up`."""
        return bool(self._to_clean or self._unclean)

    @property
    def cleaning(self) -> bool:
        """Whether a cleanup is under way or waits."""
        return bool(self._cleaning or self._to_clean)

    def clean_up(self) -> None:
        """Start cleanups that are due. Call this after children have ended, and repeatedly while cleanups wait."""
        while self._unclean and self._unclean[0][0] <= time.monotonic():
            self._to_clean.append(self._unclean.pop(0)[1])
        # With one user for all executors, an orphan of an ended executor could still write into the folder that is
        # being removed. So each call first kills orphans, and starts a cleanup only if it found no orphan.
        if not self._to_clean or (self._uids is None and cleanup.kill_orphans({*self._executors, *self._cleaning})):
            return
        while self._to_clean:
            sandbox = self._to_clean[-1]
            try:
                pid = os.fork()
            except OSError:  # tasks have used up all processes or all memory: a later call tries again
                return
            if pid:
                self._cleaning[pid] = self._to_clean.pop()
                continue
            clean = False
            try:
                # A cleanup may take long. With these descriptors, its process would keep the shared memory of executors
                # that end meanwhile.
                for descriptor in self._descriptors:
                    os.close(descriptor)
                clean = self._clear(sandbox)
            finally:
                os._exit(0 if clean else 1)

    def _clear(self, sandbox: Sandbox) -> bool:
        """Clean up after an executor, and return whether nothing of it is left.

        This function runs in a process of its own, because a task may have left very many files.
        """
        if sandbox.uid is None:
            return cleanup.remove(sandbox.folder)
        # Processes are killed first: while a process runs, it can make new files.
        kernel.act_as(sandbox.uid, uid_pool.guard_uid(sandbox.uid), keep=kernel.SETUID)
        cleanup.kill_own_processes()
        removed = cleanup.remove(sandbox.folder)
        return cleanup.remove_from(self._places) and removed


def _rules(settings: Confinement, *, common_memory: bool) -> FileRules:
    """Return the rules of all executors; `common_memory` says whether they share the file system at SHARED_MEMORY."""
    resolver = os.path.dirname(os.path.realpath("/etc/resolv.conf"))
    devices = [path for pattern in _DEVICES for path in glob(pattern)]
    return FileRules(
        [*_SYSTEM, *uid_pool.interpreter_folders(), resolver, *settings.readable],
        [*devices, *settings.writable],
        [SHARED_MEMORY] if common_memory else [],
    )
