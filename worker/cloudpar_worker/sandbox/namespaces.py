"""Namespaces of one executor: its own IPC objects and, with `--network none`, a network with only a loopback."""

import fcntl
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from . import kernel

_IPC, _USER, _PID, _NETWORK = 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000
_SYS_ADMIN, _NET_ADMIN = 1 << 21, 1 << 12
_PRIVILEGED: Final = _SYS_ADMIN | _NET_ADMIN
"""The capabilities with which a process can make namespaces without a user namespace around them."""
_SIOCSIFFLAGS: Final = 0x8914
_IFF_UP: Final = 1


class Namespaces:
    """The namespaces that executors get. Making this object may fork, so make it only in a process with one thread.

    A process with the capabilities in _PRIVILEGED makes namespaces directly. Any other process first needs a user
    namespace, in which files of other users seem to have no known owner. So such a process makes namespaces only if the
    executor must not have a network. It makes none for IPC objects alone, because the system call filter closes these
    to tasks anyway.

    Args:
        network: Whether executors share the network of the machine.

    Attributes:
        has_ipc: Whether executors get IPC objects of their own.
        has_network: Whether executors could get a network of their own here, whether or not they get one.
    """

    def __init__(self, *, network: bool) -> None:
        self._network = network
        self._privileged = kernel.capabilities() & _PRIVILEGED == _PRIVILEGED and _works(_enter_directly)
        self.has_network = self._privileged or _works(_enter_by_user_namespace)
        self.has_ipc = self._privileged or (self.has_network and not network)

    def enter_before_user(self) -> None:
        """Enter the namespaces if this needs the zygote's rights. Call this in an executor that still has these rights.

        Raises:
            OSError: The kernel refuses this, so this executor must not start.
        """
        if self._privileged:
            _enter_directly(network=self._network)

    def enter_as_user(self) -> None:
        """Enter the namespaces that `enter_before_user` could not enter. Call this after the change of user.

        Raises:
            OSError: The kernel refuses this. The executor must not start, because its tasks must not have a network.
        """
        if not self._privileged and not self._network:
            _enter_by_user_namespace()


def pid_namespaces_work() -> bool:
    """Whether the kernel lets this process make PID namespaces, alone or in a user namespace. The call may fork."""
    return _works(lambda: kernel.unshare(_PID)) or _works(lambda: kernel.unshare(_USER | _PID))


def _enter_directly(*, network: bool = False) -> None:
    kernel.unshare(_IPC if network else _IPC | _NETWORK)
    if not network:
        _start_loopback()


def _enter_by_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    kernel.unshare(_USER | _IPC | _NETWORK)
    kernel.show_memory()  # while its memory is hidden, the files below belong to root
    # A process may map its group only after it has given up changing its groups. Otherwise the process could leave a
    # group that exists to deny its members access to files.
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")
    _start_loopback()
    # In the user namespace this process has all capabilities. With these, task code could configure the network, and
    # reach parts of the kernel that are otherwise closed to task code.
    kernel.set_capabilities(0, 0, 0)


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _start_loopback() -> None:
    """Start the loopback interface of a new network, so that a task's own servers and clients reach each other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def _works(enter: Callable[[], None]) -> bool:
    """Whether the kernel lets a process enter namespaces by the function `enter`. A forked process tries it."""
    if not kernel.LINUX:
        return False
    pid = os.fork()
    if not pid:
        status = 1
        with suppress(BaseException):
            enter()
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
