"""Calls to the Linux kernel for which Python has no functions of its own."""

import ctypes
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

LINUX: Final = sys.platform == "linux"
SETUID: Final = 1 << 7
SETGID: Final = 1 << 6
KILL: Final = 1 << 5
NEEDED: Final = SETUID | SETGID | KILL
"""The capabilities that a zygote needs to give executors user ids of their own, and to kill such executors."""

_ARM: Final = platform.machine() in {"aarch64", "arm64"}
_CAPSET: Final = 91 if _ARM else 126
_UNSHARE: Final = 97 if _ARM else 272
_FSOPEN, _FSCONFIG, _FSMOUNT, _MOVE_MOUNT = 430, 431, 432, 429
_CLOEXEC, _SET_STRING, _CMD_CREATE, _NO_SETUID_NO_DEVICES, _AT_FDCWD, _EMPTY_PATH = 1, 1, 6, 2 | 4, -100, 4
"""Flags and commands of these four calls."""
_CAPABILITY_VERSION_3: Final = 0x20080522
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
_PR_SET_KEEPCAPS, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER, _PR_CAP_AMBIENT = 8, 38, 36, 47
_PR_CAP_AMBIENT_RAISE: Final = 2

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, argument: int = 0, more: int = 0) -> int:
    """Make the system call prctl, which changes properties of this process.

    Raises:
        OSError: The kernel refuses the call, or does not know it.
    """
    return _checked(_libc.prctl(option, ctypes.c_ulong(argument), ctypes.c_ulong(more), 0, 0))


def syscall(number: int, *arguments: object) -> int:
    """Make a system call, given by its number.

    Raises:
        OSError: The kernel refuses the call, or does not know it.
    """
    return _checked(_libc.syscall(ctypes.c_long(number), *arguments))


def _checked(result: int) -> int:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def unshare(namespaces: int) -> None:
    """Move this process into new namespaces, given by their CLONE_NEW flags.

    Raises:
        OSError: The kernel refuses the call, or does not know it.
    """
    syscall(_UNSHARE, ctypes.c_ulong(namespaces))


def make_file_system(kind: str, options: Mapping[str, int]) -> int:
    """Make a file system that is mounted nowhere; return a descriptor that keeps it alive.

    Raises:
        OSError: The kernel refuses a call, or does not know it.
    """
    context = syscall(_FSOPEN, kind.encode(), _CLOEXEC)
    try:
        for name, value in options.items():
            syscall(_FSCONFIG, context, _SET_STRING, name.encode(), str(value).encode(), 0)
        syscall(_FSCONFIG, context, _CMD_CREATE, None, None, 0)
        return syscall(_FSMOUNT, context, _CLOEXEC, _NO_SETUID_NO_DEVICES)
    finally:
        os.close(context)


def attach_file_system(descriptor: int, folder: str) -> None:
    """Mount a file system of `make_file_system` at a folder.

    Raises:
        OSError: The kernel refuses the call, or does not know it.
    """
    syscall(_MOVE_MOUNT, descriptor, b"", _AT_FDCWD, folder.encode(), _EMPTY_PATH)


def change_mount(folder: str, flags: int) -> None:
    """Change a mount by the flags of the call mount.

    Raises:
        OSError: The kernel refuses the call.
    """
    _checked(_libc.mount(b"none", folder.encode(), None, ctypes.c_ulong(flags), None))


def no_new_privileges() -> None:
    """Let neither this process nor a program that it starts gain rights, for example by a set-user-id bit."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def adopt_orphans() -> None:
    """Make this process the new parent of each of its descendants whose parent ends."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, even if this process hangs in C. Linux only.

    `parent` is the process id of the parent. If the parent has already ended, this process ends at once. On other
    systems the function does nothing; there the zygote kills its executors when the agent ends, as it does on Linux.
    """
    if not LINUX:
        return
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent ended before the call of prctl, so the kernel would send no signal


def offer_to_the_oom_killer() -> None:
    """Make the kernel kill this process rather than the agent when memory runs out."""
    show_memory()  # while its memory is hidden, the file below belongs to root
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:
        score.write("500")


def hide_memory() -> None:
    """Keep other processes of this user, such as task code, from reading this process's memory and environment.

    Does nothing except on Linux.
    """
    if LINUX:
        prctl(_PR_SET_DUMPABLE, 0)


def show_memory() -> None:
    """Undo `hide_memory`: let other processes of this user read this process's memory and environment."""
    if LINUX:
        prctl(_PR_SET_DUMPABLE, 1)


def capabilities(line: str = "CapEff") -> int:
    """Return the capabilities of this process: the effective ones, or those in another line of its /proc status.

    The result is 0 except on Linux.
    """
    if not LINUX:
        return 0
    with open("/proc/self/status", "rb") as status:  # as bytes, because the name of this process may not be UTF-8
        return next(int(each.split()[1], 16) for each in status if each.startswith(f"{line}:".encode()))


def set_capabilities(effective: int, permitted: int, inheritable: int) -> None:
    """Set the capabilities of this process. The process loses all capabilities outside `permitted` for good.

    Raises:
        OSError: The process does not have one of these capabilities.
    """
    header = struct.pack("<Ii", _CAPABILITY_VERSION_3, 0)
    syscall(_CAPSET, header, struct.pack("<6I", effective, permitted, inheritable, 0, 0, 0))


def become(user: int) -> None:
    """Become this user for good, with no other group than the one of the same number, and without capabilities."""
    act_as(user, user)


def act_as(user: int, guard: int, *, keep: int = 0) -> None:
    """Send signals and handle files as this user, and keep only the capabilities in `keep` (by default none).

    The process receives no signals from this user's processes.

    When a process sends a signal, the kernel compares the sender's real and effective user with the receiver's real and
    saved user. So the real and saved user of this process become `guard`, which is another id than `user` (except in
    `become`). Without the guard, task code could kill or stop the process that cleans up after the task.
    """
    # The groups come first: after the change of user, the process may no longer change them and would keep root's.
    os.setgroups([])
    os.setresgid(user, user, user)
    if keep:
        prctl(_PR_SET_KEEPCAPS, 1)
    os.setresuid(guard, user, guard)
    if LINUX:
        set_capabilities(keep, keep, 0)


def use_files_as(user: int) -> None:
    """Handle files as this user from now on. Without the capability SETUID nothing changes. Linux only."""
    _libc.setfsuid(user)


@contextmanager
def files_of_root() -> Iterator[None]:
    """Inside this context, open and create files as root, without root's other rights. Needs the capability SETUID."""
    before = _libc.setfsuid(0)
    try:
        yield
    finally:
        _libc.setfsuid(before)


def become_with_needed(user: int) -> None:
    """Become this user, but keep the capabilities in NEEDED, as far as this process has them.

    Programs that this process starts also keep them.
    """
    kept = capabilities("CapPrm") & NEEDED
    prctl(_PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    set_capabilities(kept, kept, kept)
    for number in range(64):
        if kept >> number & 1:
            prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, number)


def rest_capabilities() -> None:
    """Let this process use no capability, but keep its capabilities for programs that it starts; no-op for root."""
    if LINUX and os.geteuid():
        set_capabilities(0, capabilities("CapPrm"), capabilities("CapInh"))
