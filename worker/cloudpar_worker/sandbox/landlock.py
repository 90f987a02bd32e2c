"""Landlock limits which files and TCP ports a process can use, and to which processes it can send signals."""

import os
import stat
import struct
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final

from .kernel import LINUX, syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_FILE = 1 << 5, 1 << 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_RESOLVE_UNIX: Final = 1 << 16
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL | _RESOLVE_UNIX
_FLAT: Final = _READ | _WRITE_FILE | _TRUNCATE | _REMOVE_FILE | _MAKE_FILE
_SCOPES: Final = 1 << 0 | 1 << 1
"""The scopes that rules can set: abstract sockets and signals. With them, a process can connect to an abstract socket
of another process, or send a signal to that process, only if the other process is under the same rules.
"""
_RIGHTS: Final = {0: 0, 1: 1 << 13, 2: 1 << 14, 3: 1 << 15, 4: 1 << 15}
"""For each version of Landlock up to 4, the bit above its highest right for files. Versions 5 to 8 have one more right.
Later versions also have the right to connect to sockets that have a path.

The kernel refuses rules with a right that it does not know.
"""
NETWORKED: Final = 4
"""The first version that limits ports."""
SCOPED: Final = 6
"""The first version that limits signals and abstract sockets."""
RESOLVING: Final = 9
"""The first version that limits connections to sockets that have a path. Sockets of the same executor stay open."""
_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_PATH, _PORT = 1, 2
"""The numbers that the kernel gives to the two kinds of rules."""


def version() -> int:
    """Return the kernel's version of Landlock; 0 if the kernel has no Landlock."""
    if not LINUX:
        return 0
    try:
        return syscall(_CREATE, None, 0, 1)
    except OSError:
        return 0


def all_rights(found: int) -> int:
    """Return the rights for files that a version of Landlock knows."""
    rights = (_RIGHTS.get(found) or 1 << 16) - 1
    return rights | _RESOLVE_UNIX if found >= RESOLVING else rights


class FileRules:
    """The rules for files, the same for all executors. The zygote makes one object; each executor adds its own folder.

    Files and folders that are not named are closed to executors. Without Landlock there are no rules, and all files are
    open.

    Args:
        readable: Files and folders that executors may read and run.
        writable: Files and folders that executors may also change.
        flat: Folders in which executors may also make, change and remove files, but nothing else. If an executor could
            make a folder there, another executor could leave files in it that only the owner of the folder may remove.
            By a socket there, an executor could send its open files to executors of other accounts.
    """

    def __init__(self, readable: Iterable[str], writable: Iterable[str], flat: Iterable[str] = ()) -> None:
        self._version = version()
        self._all = all_rights(self._version)
        self._opened: list[tuple[int, int]] = []
        if self._version:
            self._opened = [
                *self._open(readable, _READ),
                *self._open(writable, self._all),
                *self._open(flat, _FLAT),
            ]

    def _open(self, paths: Iterable[str], rights: int) -> Iterable[tuple[int, int]]:
        for path in paths:
            with suppress(OSError):  # a path that cannot be opened gets no rule, so it stays closed
                descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
                is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
                yield descriptor, rights if is_folder else rights & _OF_FILES

    def restrict(self, own: Sequence[str]) -> None:
        """Apply the rules to this process and all that it starts, with full rights to the folders in `own`.

        If the kernel can, the rules also limit signals and abstract sockets to these processes. They also let these
        processes listen only at TCP ports that the kernel chooses: otherwise a task could take the port of a service
        that restarts.

        Raises:
            OSError: The kernel refuses, for example because the process may still gain privileges.
        """
        if not self._version:
            return
        # A kernel refuses a longer struct than it knows, unless the further bytes are 0. So each version gets a struct
        # of its own size.
        size = 8 if self._version < NETWORKED else 16 if self._version < SCOPED else 24
        scopes = _SCOPES if self._version >= SCOPED else 0
        network = _BIND_TCP if self._version >= NETWORKED else 0
        ruleset = syscall(_CREATE, struct.pack("<QQQ", self._all, network, scopes)[:size], size, 0)
        if network:
            any_free_port = struct.pack("<QQ", network, 0)
            syscall(_ADD, ruleset, _PORT, any_free_port, 0)
        for descriptor, rights in [*self._opened, *self._open(own, self._all)]:
            syscall(_ADD, ruleset, _PATH, struct.pack("<Qi", rights & self._all, descriptor), 0)
        syscall(_RESTRICT, ruleset, 0)
        # The rules stay in force without the descriptor. Task code runs in this process, and must not get the
        # descriptor.
        os.close(ruleset)


class PortRules:
    """The rules for TCP connections. The zygote makes one object for all executors, because making it takes 0.1 s.

    Args:
        closed: The ports to which executors may not connect; all others are open. If `closed` is empty, or if the
            kernel cannot limit ports, there are no rules.
    """

    def __init__(self, closed: Collection[int]) -> None:
        self._ruleset: int | None = None
        if closed and version() >= NETWORKED:
            self._ruleset = syscall(_CREATE, struct.pack("<QQ", 0, _CONNECT_TCP), 16, 0)
            for port in range(1 << 16):
                if port not in closed:
                    syscall(_ADD, self._ruleset, _PORT, struct.pack("<QQ", _CONNECT_TCP, port), 0)

    def restrict(self) -> None:
        """Apply the rules to this process and all that it starts.

        Raises:
            OSError: The kernel refuses, for example because the process may still gain privileges.
        """
        if self._ruleset is not None:
            syscall(_RESTRICT, self._ruleset, 0)
