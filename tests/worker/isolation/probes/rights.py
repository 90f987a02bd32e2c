"""Probes for more rights than a task has."""

import ctypes
import fcntl
import mmap
import os
import socket
import struct
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from .probing import Clues, call, opens, probe, read


@probe("becoming root, by setuid")
def set_user(clues: Clues) -> Any:
    os.setuid(0)
    return "root"


@probe("becoming the agent's user or group")
def set_group(clues: Clues) -> Any:
    os.setgroups([0])
    return "root's group"


@probe("capabilities, or gaining any")
def gain(clues: Clues) -> Any:
    status = dict(line.split(":\t", 1) for line in read("/proc/self/status").decode().splitlines())
    held = {name: status[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb") if int(status[name], 16)}
    return held or status["NoNewPrivs"] != "1" or status["Seccomp"] != "2"


@probe("a capability, by capset")
def set_capability(clues: Clues) -> Any:
    return call((126, 91), struct.pack("<Ii", 0x20080522, 0), struct.pack("<6I", 128, 128, 0, 0, 0, 0)) == 0


@probe("a set-user-id bit, by chmod", open_otherwise=True)
def set_user_bit(clues: Clues) -> Any:
    path = Path(tempfile.mkdtemp(), "mine")
    path.touch()
    path.chmod(0o4755)
    return path.stat().st_mode & 0o7000


@probe("a set-user-id bit, by fchmod, fchmodat, fchmodat2", open_otherwise=True)
def set_user_bits(clues: Clues) -> Any:
    path = Path(tempfile.mkdtemp(), "mine")
    descriptor = os.open(path, os.O_CREAT)
    with suppress(OSError):
        os.fchmod(descriptor, 0o4755)
    with suppress(OSError):
        os.chmod("mine", 0o4755, dir_fd=os.open(path.parent, os.O_RDONLY))
    with suppress(OSError):
        call((452, 452), -100, str(path).encode(), 0o4755, 0)
    return path.stat().st_mode & 0o7000


@probe("a file with a set-user-id bit, by open", open_otherwise=True)
def open_with_bit(clues: Clues) -> Any:
    path = Path(tempfile.mkdtemp(), "mine")
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    return path.stat().st_mode & 0o7000


@probe("a file with a set-user-id bit, by openat2 and mknod", open_otherwise=True)
def make_with_bit(clues: Clues) -> Any:
    folder = tempfile.mkdtemp()
    try:
        call((437, 437), -100, f"{folder}/one".encode(), struct.pack("QQQ", 0o101, 0o4755, 0), 24)
    except OSError:
        os.mknod(f"{folder}/two", 0o104755)
    return os.listdir(folder)


@probe("a user namespace, in which the task would be root")
def unshare(clues: Clues) -> Any:
    return call((272, 97), 0x10000000) == 0


@probe("a process in a namespace of its own, by clone")
def clone_namespace(clues: Clues) -> Any:
    pid = call((56, 220), 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[0]


@probe("a process that is no descendant of its executor, by clone (CLONE_PARENT)", open_otherwise=True)
def clone_sibling(clues: Clues) -> Any:
    pid = call((56, 220), 0x8000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid


@probe("leaving orphans to the zygote, by prctl (PR_SET_CHILD_SUBREAPER)", open_otherwise=True)
def disown_orphans(clues: Clues) -> Any:
    return call((157, 167), 36, 0, 0, 0, 0) == 0


@probe("the namespace of another process, by setns")
def enter_namespace(clues: Clues) -> Any:
    return call((308, 268), os.open("/proc/self/ns/net", os.O_RDONLY), 0) == 0


@probe("mounting a file system")
def mount(clues: Clues) -> Any:
    return call((165, 40), b"none", tempfile.mkdtemp().encode(), b"tmpfs", 0, None) == 0


@probe("another root folder, by chroot")
def change_root(clues: Clues) -> Any:
    os.chroot("/proc")
    return "changed"


@probe("the kernel's key rings")
def keyring(clues: Clues) -> Any:
    return call((248, 217), b"user", b"probe", b"x", 1, -3)


@probe("a BPF program")
def bpf(clues: Clues) -> Any:
    return call((321, 280), 0, ctypes.create_string_buffer(72), 72)


@probe("performance events of other processes")
def performance(clues: Clues) -> Any:
    attributes = struct.pack("<II", 1, 112) + bytes(104)
    return call((298, 241), ctypes.create_string_buffer(attributes), clues["other"], -1, -1, 0)


@probe("io_uring, which bypasses system call filters")
def io_uring(clues: Clues) -> Any:
    return call((425, 425), 1, ctypes.create_string_buffer(120))


@probe("userfaultfd")
def user_faults(clues: Clues) -> Any:
    return call((323, 282), 1)


@probe("System V shared memory, which outlives the process that made it", open_otherwise=True)
def system_v(clues: Clues) -> Any:
    identifier = call((29, 194), 0, 4096, 0o1600)
    call((31, 195), identifier, 0, None)
    return True


@probe("memory that no process maps, by memfd_create", open_otherwise=True)
def unmapped_memory(clues: Clues) -> Any:
    return os.memfd_create("probe")


@probe("shared memory without a file, whose pages need not be in a page table", open_otherwise=True)
def unseen_memory(clues: Clues) -> Any:
    return len(mmap.mmap(-1, mmap.PAGESIZE))


@probe("the same memory, by /dev/zero", open_otherwise=True)
def mapped_zeros(clues: Clues) -> Any:
    with open("/dev/zero", "rb") as file:
        return len(mmap.mmap(file.fileno(), mmap.PAGESIZE, prot=mmap.PROT_READ))


@probe("typing into a terminal, by TIOCSTI")
def type_ahead(clues: Clues) -> Any:
    return fcntl.ioctl(0, 0x5412, b"x")


@probe("setting the clock")
def clock(clues: Clues) -> Any:
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return "set"


@probe("the host's name")
def host_name(clues: Clues) -> Any:
    socket.sethostname(socket.gethostname())
    return "set"


@probe("raw packets")
def raw_packets(clues: Clues) -> Any:
    return socket.socket(17, socket.SOCK_RAW).fileno()


opens("a setting of the kernel", "/proc/sys/kernel/core_pattern", "w")
opens("the machine's memory, as a device", "/dev/mem", "rb")


@probe("creating a device")
def make_device(clues: Clues) -> Any:
    path = tempfile.mkdtemp() + "/device"
    os.mknod(path, 0o20666, os.makedev(1, 1))
    return path
