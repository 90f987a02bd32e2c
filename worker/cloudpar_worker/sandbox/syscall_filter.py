"""A seccomp filter, which refuses system calls that tasks do not need and that could reach beyond an executor.

The filter lists the calls that are refused, not those that are allowed, because no list can name all calls that
extension modules of Python need. A refused call fails with EPERM, as if a right were missing. A few calls fail as if
the kernel did not have them, so that libraries use other calls.
"""

import ctypes
import errno
import platform
import socket
import struct
from collections.abc import Collection
from typing import Final

from .kernel import LINUX, syscall

_MACHINES: Final = {"x86_64": 0, "aarch64": 1, "arm64": 1}
_COLUMN: Final = _MACHINES.get(platform.machine())
_AUDIT_ARCH: Final = (0xC000003E, 0xC00000B7)
_SECCOMP: Final = (317, 277)
_X32: Final = 0x40000000

REFUSED: Final[dict[str, tuple[int | None, int | None]]] = {
    # Other processes: their memory, descriptors and state.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272), "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),  # its argument may be any open folder of /proc, and the filter cannot see which
    "migrate_pages": (256, 238), "move_pages": (279, 239),
    # Objects that outlive a process and that all processes of a user share.
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191), "semtimedop": (220, 192),
    "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # Large parts of the kernel that have had security holes, or that can avoid other filters.
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "modify_ldt": (154, None), "uselib": (134, None),
    # inotify shows the names of files that other processes open, even in folders that Landlock's rules close. Besides,
    # tasks could use up the instances that the kernel allows to each user.
    "inotify_add_watch": (254, 27), "inotify_init": (253, None), "inotify_init1": (294, 26),
    # Memory that belongs to no process, so that it counts towards no limit.
    "memfd_create": (319, 279), "memfd_secret": (447, 447),
    # Namespaces and file systems.
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "move_mount": (429, 429),
    "open_tree": (428, 428), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "setns": (308, 268), "unshare": (272, 97),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263), "lookup_dcookie": (212, 18), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "open_tree_attr": (467, 467), "ustat": (136, None), "sysfs": (139, None), "nfsservctl": (180, 42),
    # The machine itself.
    "acct": (163, 89), "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    "vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None), "_sysctl": (156, None),
}  # fmt: skip
"""The refused system calls, with their numbers on x86-64 and on ARM64; None if the processor lacks the call."""

_CLONE, _CLONE3, _IOCTL, _PRLIMIT, _SOCKET = (56, 220), (435, 435), (16, 29), (302, 261), (41, 198)
_SIGNALLING: Final = ((62, 129), (200, 130), (234, 131), (129, 138), (297, 240), (434, 434))
"""kill, tkill, tgkill, rt_sigqueueinfo, rt_tgsigqueueinfo, pidfd_open: the first argument is the process or thread."""
_SCHEDULING: Final = ((142, 118), (144, 119), (314, 274))
"""sched_setparam, sched_setscheduler, sched_setattr: the first argument is the thread; 0 is the caller."""
_AFFINITY: Final = (203, 122)
"""sched_setaffinity, with the same first argument."""
_PRIORITIES: Final = (((141, 140), 2), ((251, 30), 3))
"""setpriority, ioprio_set; for each, the value of the first argument that means all processes of a user. The second
argument is the process, group or user; 0 means the caller's.
"""
_LANDLOCK: Final = (444, 445, 446)
_NAMESPACES: Final = 0x7E020000
_CLONE_PARENT: Final = 0x8000
_PRCTL: Final = (157, 167)
_SUBREAPER: Final = 36
"""The option of prctl with which the caller becomes the parent of orphans, or stops being it."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_FCNTL, _F_SETOWN, _F_SETSIG, _F_SETOWN_EX = (72, 25), 8, 10, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902
"""Requests of ioctl that choose which process gets the signals of a descriptor. These requests are another way to send
signals.
"""
_IOCTLS: Final = (_TIOCSTI, _TIOCLINUX, _FIOSETOWN, _SIOCSPGRP)
_OPENAT2: Final = (437, 437)
_SPECIAL: Final = 0o7000
"""The set-user-id, set-group-id and sticky bits of a mode."""
_O_CREAT, _O_TMPFILE = 0o100, 0o20000000
_OPENING: Final = (((2, None), 1), ((257, 56), 2))
"""open, openat, each with the position of its argument `flags`; the mode is the next argument."""
_MODES: Final = (
    ((90, None), 1), ((91, 52), 1), ((268, 53), 2), ((452, 452), 2), ((85, None), 1), ((133, None), 1), ((259, 33), 2),
)  # fmt: skip
"""chmod, fchmod, fchmodat, fchmodat2, creat, mknod, mknodat, each with the position of its argument `mode`."""
_FAMILIES: Final = (socket.AF_INET, socket.AF_INET6, getattr(socket, "AF_NETLINK", 16))
_NO_IP: Final = 256
"""Socket protocols from this number on do not belong to IP, for example multipath TCP and SMC. The rules on ports do
not apply to their connections.
"""
_MMAP: Final = (9, 222)
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_FASTOPEN: Final = 0x20000000
_SENDING: Final = (((44, 206), 3), ((46, 211), 2), ((307, 269), 3))
"""sendto, sendmsg, sendmmsg, each with the position of its argument `flags`. With the flag MSG_FASTOPEN these calls
connect, and the rules on ports do not apply to such a connection.
"""

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH = 0, 4
_FIRST, _SECOND, _THIRD, _FOURTH = _ARGUMENTS = 16, 24, 32, 40
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE: Final = _ERRNO | errno.EPERM


def available() -> bool:
    """Whether this kernel can filter system calls, and this module knows the call numbers of this processor."""
    if not LINUX or _COLUMN is None:
        return False
    try:
        return syscall(_SECCOMP[_COLUMN], 2, 0, struct.pack("<I", _ERRNO)) == 0
    except OSError:
        return False


def program(protected: Collection[int], *, own_user: bool) -> bytes:
    """Make the filter, as a program for the kernel.

    Args:
        protected: Processes to which tasks can send no signals, neither alone nor as process groups.
        own_user: Whether tasks have a user of their own. Otherwise they may make no Unix sockets, because these can
            have a path (socket pairs are always allowed). And they may set the priority, the scheduler and the cores of
            the calling thread only.
    """
    column = _COLUMN or 0
    # In another architecture, and in the x32 ABI, the same number means another call, so a task could avoid the filter.
    made = [
        _step(_LOAD, _ARCH), _step(_EQUAL, _AUDIT_ARCH[column], 1, 0), _step(_RETURN, _REFUSE),
        _step(_LOAD, _NUMBER), _step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _REFUSE),
    ]  # fmt: skip
    for numbers in REFUSED.values():
        if numbers[column] is not None:
            made += _when(numbers[column], [_step(_RETURN, _REFUSE)])
    # The filter cannot see the flags of clone3, so libraries have to use clone.
    made += _when(_CLONE3[column], [_step(_RETURN, _ERRNO | errno.ENOSYS)])
    # The filter cannot see the mode of openat2 either, so libraries have to use openat.
    made += _when(_OPENAT2[column], [_step(_RETURN, _ERRNO | errno.ENOSYS)])
    # Tasks may not use Landlock: each layer that a task added would copy all rules on ports, which takes megabytes in
    # the kernel.
    for number in _LANDLOCK:
        made += _when(number, [_step(_RETURN, _ERRNO | errno.EOPNOTSUPP)])
    # The worker finds the processes of a task as descendants of the executor. The flag CLONE_PARENT makes a new process
    # a child of the zygote. By the option PR_SET_CHILD_SUBREAPER the executor could stop being the parent of orphans.
    # Each could move processes out of these descendants, so the filter refuses both.
    started = _refuse_bits(_NAMESPACES | _CLONE_PARENT)
    made += _when(_CLONE[column], [_step(_LOAD, _FIRST), *started, _step(_RETURN, _ALLOW)])
    made += _when(_PRCTL[column], [_step(_LOAD, _FIRST), *_refuse(_SUBREAPER), _step(_RETURN, _ALLOW)])
    made += _when(_IOCTL[column], [_step(_LOAD, _SECOND), *_refuse(*_IOCTLS), _step(_RETURN, _ALLOW)])
    owners = _refuse(_F_SETOWN, _F_SETSIG, _F_SETOWN_EX)
    made += _when(_FCNTL[column], [_step(_LOAD, _SECOND), *owners, _step(_RETURN, _ALLOW)])
    for numbers, mode in _MODES:
        if numbers[column] is not None:
            special = [_step(_LOAD, _ARGUMENTS[mode]), *_refuse_bits(_SPECIAL)]
            made += _when(numbers[column], [*special, _step(_RETURN, _ALLOW)])
    for numbers, flags in _OPENING:
        if numbers[column] is not None:
            made += _when(numbers[column], _unless_special(_ARGUMENTS[flags], _ARGUMENTS[flags + 1]))
    # Tasks may not change limits of other processes of the same user. Process 0 stands for the caller itself.
    made += _when(_PRLIMIT[column], [_step(_LOAD, _FIRST), *_allow(0), _step(_RETURN, _REFUSE)])
    families = (*_FAMILIES, socket.AF_UNIX) if own_user else _FAMILIES
    # Fail as if the kernel did not know the protocol: libraries then use TCP, to which the rules on ports apply.
    unknown = [_step(_LOAD, _THIRD), _step(_AT_LEAST, _NO_IP, 0, 1), _step(_RETURN, _ERRNO | errno.EPROTONOSUPPORT)]
    made += _when(_SOCKET[column], [*unknown, _step(_LOAD, _FIRST), *_allow(*families), _step(_RETURN, _REFUSE)])
    for numbers, flags in _SENDING:
        fast = [_step(_BITS, _FASTOPEN, 0, 1), _step(_RETURN, _ERRNO | errno.EOPNOTSUPP)]
        made += _when(numbers[column], [_step(_LOAD, _ARGUMENTS[flags]), *fast, _step(_RETURN, _ALLOW)])
    made += [] if own_user else _only_own_scheduling(column)
    # A process can drop shared pages without a file from its page tables, and still hold their memory. The meter of an
    # executor's memory would not see this memory.
    unseen = [_step(_LOAD, _FOURTH), _step(_BITS, _MAP_ANONYMOUS, 0, 2), *_refuse_bits(_MAP_SHARED)]
    made += _when(_MMAP[column], [*unseen, _step(_RETURN, _ALLOW)])
    every_process = {0xFFFFFFFF}  # kill(-1) reaches all processes; a negative id is a process group
    shielded = every_process | set(protected) | {(1 << 32) - pid for pid in protected}
    for numbers in _SIGNALLING:
        made += _when(numbers[column], [_step(_LOAD, _FIRST), *_refuse(*sorted(shielded)), _step(_RETURN, _ALLOW)])
    return b"".join([*made, _step(_RETURN, _ALLOW)])


def without_sockets() -> bytes:
    """Make a filter that refuses all sockets except socket pairs, which connect only processes that inherit them.

    An executor applies it in addition to the filter of `program`, and before its first task, because sockets that a
    process already has stay open.
    """
    column = _COLUMN or 0
    made = [
        _step(_LOAD, _ARCH), _step(_EQUAL, _AUDIT_ARCH[column], 1, 0), _step(_RETURN, _REFUSE),
        _step(_LOAD, _NUMBER), _step(_AT_LEAST, _X32, 0, 1), _step(_RETURN, _REFUSE),
    ]  # fmt: skip
    return b"".join([*made, *_when(_SOCKET[column], [_step(_RETURN, _REFUSE)]), _step(_RETURN, _ALLOW)])


def _only_own_scheduling(column: int) -> list[bytes]:
    """Return steps that let the calls for scheduling change only the calling thread, not other processes."""
    made: list[bytes] = []
    for numbers in _SCHEDULING:
        made += _when(numbers[column], [_step(_LOAD, _FIRST), *_allow(0), _step(_RETURN, _REFUSE)])
    # glibc sets the cores of a new thread by the thread's number. If this call failed, OpenMP would end the process. So
    # the filter lets the call return success without an effect.
    nothing = _step(_RETURN, _ERRNO | 0)
    made += _when(_AFFINITY[column], [_step(_LOAD, _FIRST), *_allow(0), nothing])
    for numbers, user in _PRIORITIES:
        whole = [_step(_LOAD, _FIRST), *_refuse(user)]
        made += _when(numbers[column], [*whole, _step(_LOAD, _SECOND), *_allow(0), _step(_RETURN, _REFUSE)])
    return made


def install(steps: bytes) -> None:
    """Apply a filter to this process and all that it starts.

    Raises:
        OSError: The kernel refuses, for example because the process may still gain privileges.
    """
    held = ctypes.create_string_buffer(steps, len(steps))
    description = struct.pack("<HxxxxxxQ", len(steps) // 8, ctypes.addressof(held))
    syscall(_SECCOMP[_COLUMN or 0], 1, 0, description)


def _step(code: int, operand: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, operand)


def _when(number: int | None, steps: list[bytes]) -> list[bytes]:
    """Return steps that run only for one system call. `steps` must decide about the call in any case."""
    return [_step(_EQUAL, number or 0, 0, len(steps)), *steps]


def _refuse(*values: int) -> list[bytes]:
    return [step for value in values for step in (_step(_EQUAL, value, 0, 1), _step(_RETURN, _REFUSE))]


def _refuse_bits(bits: int) -> list[bytes]:
    return [_step(_BITS, bits, 0, 1), _step(_RETURN, _REFUSE)]


def _unless_special(flags: int, mode: int) -> list[bytes]:
    """Refuse special modes if the call creates a file; in other calls the argument `mode` is undefined."""
    return [
        _step(_LOAD, mode), _step(_BITS, _SPECIAL, 0, 3),
        _step(_LOAD, flags), *_refuse_bits(_O_CREAT | _O_TMPFILE), _step(_RETURN, _ALLOW),
    ]  # fmt: skip


def _allow(*values: int) -> list[bytes]:
    return [step for value in values for step in (_step(_EQUAL, value, 0, 1), _step(_RETURN, _ALLOW))]
