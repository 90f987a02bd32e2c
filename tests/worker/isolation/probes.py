"""What task code tries, one function a probe: it returns what it found, or nothing; an OSError is a refusal.

They travel by value and run in an executor. `clues` is all that an attacker could know: see shared.Shared.
"""

import ctypes
import fcntl
import hashlib
import os
import platform
import re
import resource
import signal
import socket
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cloudpar_worker.executor import runner

Clues = dict[str, Any]


class Probe(NamedTuple):
    """What is tried, in words, and the code that tries it."""

    tried: str
    code: Callable[[Clues], Any]
    open_otherwise: bool
    """It succeeds where tasks are not confined, for a worker and tasks of one user: so it is able to find something."""


PROBES: list[Probe] = []


def probe(tried: str, *, open_otherwise: bool = False) -> Callable[[Callable[[Clues], Any]], Callable[[Clues], Any]]:
    def keep(code: Callable[[Clues], Any]) -> Callable[[Clues], Any]:
        PROBES.append(Probe(tried, code, open_otherwise))
        return code

    return keep


def read(path: str, size: int = 1 << 16) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read(size)


def call(number: tuple[int, int], *arguments: Any) -> int:
    """A system call, by its numbers on x86-64 and on ARM64."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number[platform.machine() != "x86_64"]), *arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# --- Secrets of the agent ---


@probe("the environment of the worker", open_otherwise=True)
def own_environment(clues: Clues) -> Any:
    return [name for name in os.environ if "SECRET" in name or "TOKEN" in name or name.startswith("AWS")]


@probe("the token in the executor's own memory, inherited")
def own_memory(clues: Clues) -> Any:
    pattern = re.compile(rb"worker.token.for.\w{5}")
    for line in read("/proc/self/maps", 1 << 22).decode().splitlines():
        span, rights, *_ = line.split()
        start, end = (int(part, 16) for part in span.split("-"))
        if not rights.startswith("rw") or "[vvar" in line:
            continue
        for found in pattern.findall(ctypes.string_at(start, end - start)):
            if hashlib.sha256(found).hexdigest() == clues["token_hash"]:
                return found
    return None


@probe("descriptors that the executor inherited")
def inherited(clues: Clues) -> Any:
    links: dict[int, str] = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            links[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:  # the one by which they are listed
            continue
    sockets = [link for link in links.values() if link.startswith("socket:")]
    others = [
        link for link in links.values() if not link.startswith(("socket:", "/memfd:cloudpar-output", "/dev/null"))
    ]
    return others + sockets[1:]


@probe("/proc/<agent>/environ")
def agent_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['agent']}/environ")


@probe("/proc/<agent>/mem")
def agent_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['agent']}/mem", "rb")


@probe("/proc/<agent>/maps")
def agent_maps(clues: Clues) -> Any:
    return read(f"/proc/{clues['agent']}/maps")


@probe("/proc/<agent>/fd")
def agent_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/fd")


@probe("/proc/<agent>/fd/0, opened")
def agent_stdin(clues: Clues) -> Any:
    return open(f"/proc/{clues['agent']}/fd/0", "rb")


@probe("/proc/<agent>/cwd")
def agent_folder(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/cwd/")


@probe("/proc/<agent>/root")
def agent_root(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['agent']}/root/")


@probe("ptrace of the agent")
def trace_agent(clues: Clues) -> Any:
    return call((101, 117), 0x4206, clues["agent"], 0, 0) == 0


@probe("process_vm_readv of the agent")
def read_agent(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((310, 270), clues["agent"], span, 1, span, 1, 0) or True


@probe("process_vm_writev to the agent")
def write_agent(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((311, 271), clues["agent"], span, 1, span, 1, 0) or True


@probe("a descriptor of the agent, by pidfd_getfd")
def take_descriptor(clues: Clues) -> Any:
    return call((438, 438), os.pidfd_open(clues["agent"]), 0, 0) or True


@probe("the environment of what started the agent, such as its token there")
def parent_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['looks_after']}/environ")


# --- The zygote ---


@probe("/proc/<zygote>/environ", open_otherwise=True)
def zygote_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['zygote']}/environ")


@probe("/proc/<zygote>/mem, in which one would change all later executors")
def zygote_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['zygote']}/mem", "r+b", buffering=0)


@probe("the zygote's socket to the agent, by /proc/<zygote>/fd", open_otherwise=True)
def zygote_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['zygote']}/fd")


@probe("ptrace of the zygote")
def trace_zygote(clues: Clues) -> Any:
    return call((101, 117), 0x4206, clues["zygote"], 0, 0) == 0


# --- Another account's executor ---


@probe("/proc/<other executor>/environ", open_otherwise=True)
def other_environment(clues: Clues) -> Any:
    return read(f"/proc/{clues['other']}/environ")


@probe("/proc/<other executor>/mem")
def other_memory(clues: Clues) -> Any:
    return open(f"/proc/{clues['other']}/mem", "rb")


@probe("/proc/<other executor>/fd, with its channel and output", open_otherwise=True)
def other_descriptors(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['other']}/fd")


@probe("/proc/<other executor>/cwd", open_otherwise=True)
def other_working_folder(clues: Clues) -> Any:
    return os.listdir(f"/proc/{clues['other']}/cwd/")


@probe("process_vm_readv of another executor")
def read_other(clues: Clues) -> Any:
    buffer = ctypes.create_string_buffer(8)
    span = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 8)
    return call((310, 270), clues["other"], span, 1, span, 1, 0) or True


@probe("another account's temporary folder", open_otherwise=True)
def other_folder(clues: Clues) -> Any:
    return os.listdir(clues["other_folder"])


@probe("another account's temporary file", open_otherwise=True)
def other_file(clues: Clues) -> Any:
    return read(clues["other_file"])


@probe("another account's shared memory", open_otherwise=True)
def other_shared(clues: Clues) -> Any:
    return read(clues["other_shared"])


@probe("writing into another account's temporary folder", open_otherwise=True)
def write_other(clues: Clues) -> Any:
    return open(clues["other_folder"] + "/planted", "w")


@probe("who else has a temporary folder", open_otherwise=True)
def other_folders(clues: Clues) -> Any:
    own = tempfile.gettempdir()
    if own == clues["tmp"]:
        return os.listdir(own)
    return [
        name for name in os.listdir(os.path.dirname(own)) if not own.endswith(name) and os.listdir(f"{own}/../{name}")
    ]


# --- Files of whoever runs the worker ---


@probe("the profile, with a user's token", open_otherwise=True)
def profile(clues: Clues) -> Any:
    return read(clues["home"] + "/profile")


@probe("the worker token's file", open_otherwise=True)
def token_file(clues: Clues) -> Any:
    return read(clues["home"] + "/worker-token")


@probe("the master's data folder", open_otherwise=True)
def data_folder(clues: Clues) -> Any:
    return read(clues["home"] + "/data/connection.json")


@probe("the home folder of whoever runs the worker", open_otherwise=True)
def home(clues: Clues) -> Any:
    return os.listdir(clues["home"])


@probe("a secret through a symbolic link in the own folder", open_otherwise=True)
def through_symbolic_link(clues: Clues) -> Any:
    link = tempfile.mkdtemp() + "/link"
    os.symlink(clues["home"] + "/profile", link)
    return read(link)


@probe("a secret through a hard link in the own folder", open_otherwise=True)
def through_hard_link(clues: Clues) -> Any:
    link = tempfile.mkdtemp() + "/link"
    os.link(clues["home"] + "/profile", link)
    return read(link)


@probe("a secret by its file handle, past its folders")
def by_handle(clues: Clues) -> Any:
    handle = ctypes.create_string_buffer(b"\x80\0\0\0" + bytes(132))
    return call((303, 264), -100, (clues["home"] + "/profile").encode(), handle, ctypes.byref(ctypes.c_int()), 0) == 0


@probe("a socket of whoever runs the worker, such as Docker's or D-Bus's", open_otherwise=True)
def unix_socket(clues: Clues) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(clues["home"] + "/socket")
        return True


@probe("the passwords of the machine")
def shadow(clues: Clues) -> Any:
    return read("/etc/shadow")


# --- What later executors would run ---


@probe("changing the worker's code")
def installed_code(clues: Clues) -> Any:
    return open(runner.__file__, "ab")


@probe("a sitecustomize for later interpreters")
def customize(clues: Clues) -> Any:
    path = os.path.dirname(os.path.dirname(msgspec.__file__)) + "/probe-of-the-tests.py"
    with open(path, "x"):
        os.unlink(path)
        return True


@probe("/etc/ld.so.preload for later programs")
def preload(clues: Clues) -> Any:
    return open("/etc/ld.so.preload", "a")


@probe("a file in a folder that is everybody's", open_otherwise=True)
def outside(clues: Clues) -> Any:
    path = f"{clues['everybodys']}/probe-{os.getpid()}"
    with open(path, "x"):
        os.unlink(path)
        return True


@probe("a file beside the own folder", open_otherwise=True)
def beside(clues: Clues) -> Any:
    return open(f"{clues['tmp']}/planted", "w")


# --- The locks on users: with all of them no other account would get an executor ---


def locks(clues: Clues) -> str:
    """Their folder is in the second place where the first cannot be written."""
    places = ("/run/cloudpar-users", "/dev/shm/cloudpar-users")  # noqa: S108
    return places[not os.path.lexists(places[0]) and os.path.lexists(places[1])]


@probe("the locks on executors' users")
def take_users(clues: Clues) -> Any:
    return open(locks(clues) + "/users", "rb")


@probe("the folder of these locks, opened")
def take_folder(clues: Clues) -> Any:
    return os.open(locks(clues), os.O_RDONLY | os.O_DIRECTORY)


@probe("a folder of its own in place of that of these locks")
def replace_users(clues: Clues) -> Any:
    os.rename(locks(clues), locks(clues) + "-of-the-tests")
    return "renamed"


# --- Signals and limits ---


@probe("killing the agent")
def kill_agent(clues: Clues) -> Any:
    os.kill(clues["agent"], 9)
    return "killed"


@probe("stopping the agent, by its thread")
def stop_agent(clues: Clues) -> Any:
    return call((234, 131), clues["agent"], clues["agent"], 19) == 0


@probe("a signal to the agent, by pidfd_send_signal")
def signal_agent(clues: Clues) -> Any:
    signal.pidfd_send_signal(os.pidfd_open(clues["agent"]), 15)
    return "ended"


@probe("a signal to the agent, by the number of one of its threads", open_otherwise=True)
def signal_thread(clues: Clues) -> Any:
    agent = clues["agent"]
    threads = [int(name) for name in os.listdir(f"/proc/{agent}/task") if int(name) != agent]
    os.kill(threads[0], 0)
    return "ended"


@probe("a signal to the agent, by pidfd_send_signal to its folder in /proc", open_otherwise=True)
def signal_folder(clues: Clues) -> Any:
    folder = os.open(f"/proc/{clues['agent']}", os.O_RDONLY | os.O_DIRECTORY)
    return call((424, 424), folder, 0, None, 0) == 0


@probe("a signal to the agent, by a descriptor that it owns (F_SETOWN)", open_otherwise=True)
def signal_owner(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return fcntl.fcntl(mine, fcntl.F_SETOWN, clues["agent"]) == 0


@probe("a signal to the agent, by a descriptor that it owns (ioctl)", open_otherwise=True)
def signal_owner_by_ioctl(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return bool(fcntl.ioctl(mine, 0x8901, struct.pack("i", clues["agent"])))


@probe("another signal than SIGIO for a descriptor (F_SETSIG)", open_otherwise=True)
def choose_signal(clues: Clues) -> Any:
    mine, _ = socket.socketpair()
    return fcntl.fcntl(mine, 10, signal.SIGTERM) == 0


@probe("killing the zygote")
def kill_zygote(clues: Clues) -> Any:
    os.kill(clues["zygote"], 9)
    return "killed"


@probe("killing the zygote's process group")
def kill_group(clues: Clues) -> Any:
    os.killpg(clues["zygote"], 9)
    return "killed"


@probe("killing what started the agent")
def kill_parent(clues: Clues) -> Any:
    os.kill(clues["looks_after"], 0)
    return "killed"


@probe("killing another account's executor")
def kill_other(clues: Clues) -> Any:
    os.kill(clues["other"], 9)
    return "killed"


@probe("killing everything")
def kill_everything(clues: Clues) -> Any:
    os.kill(-1, 9)
    return "killed"


@probe("taking the agent's descriptors away, by prlimit")
def limit_agent(clues: Clues) -> Any:
    return resource.prlimit(clues["agent"], resource.RLIMIT_NOFILE, (16, 16))


@probe("more processes than allowed, by setrlimit")
def more_processes(clues: Clues) -> Any:
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except ValueError as error:
        raise PermissionError(str(error)) from None
    return "raised"


@probe("core dumps")
def core_dumps(clues: Clues) -> Any:
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
    except ValueError as error:
        raise PermissionError(str(error)) from None
    return "allowed"


@probe("hiding from the killer of what takes too much memory", open_otherwise=True)
def hide_from_oom(clues: Clues) -> Any:
    Path("/proc/self/oom_score_adj").write_text("0")
    return "hidden"


# --- Rights ---


@probe("being root, by setuid")
def set_user(clues: Clues) -> Any:
    os.setuid(0)
    return "root"


@probe("being the agent's user or group")
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
        os.chmod("mine", 0o4755, dir_fd=os.open(path.parent, os.O_RDONLY))  # noqa: S103
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


@probe("a user name space, in which one is root")
def unshare(clues: Clues) -> Any:
    return call((272, 97), 0x10000000) == 0


@probe("a process in a name space of its own, by clone")
def clone_namespace(clues: Clues) -> Any:
    pid = call((56, 220), 0x10000000 | 17, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[0]


@probe("another's name space, by setns")
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


@probe("performance events of others")
def performance(clues: Clues) -> Any:
    attributes = struct.pack("<II", 1, 112) + bytes(104)
    return call((298, 241), ctypes.create_string_buffer(attributes), clues["other"], -1, -1, 0)


@probe("io_uring, which passes system call filters")
def io_uring(clues: Clues) -> Any:
    return call((425, 425), 1, ctypes.create_string_buffer(120))


@probe("userfaultfd")
def user_faults(clues: Clues) -> Any:
    return call((323, 282), 1)


@probe("a System V shared memory, which outlives its maker", open_otherwise=True)
def system_v(clues: Clues) -> Any:
    identifier = call((29, 194), 0, 4096, 0o1600)
    call((31, 195), identifier, 0, None)
    return True


@probe("memory that is mapped nowhere, by memfd_create", open_otherwise=True)
def unmapped_memory(clues: Clues) -> Any:
    return os.memfd_create("probe")


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


@probe("a setting of the kernel")
def kernel_setting(clues: Clues) -> Any:
    return open("/proc/sys/kernel/core_pattern", "w")


@probe("the machine's memory, as a device")
def memory_device(clues: Clues) -> Any:
    return open("/dev/mem", "rb")


@probe("a device of one's own")
def make_device(clues: Clues) -> Any:
    path = tempfile.mkdtemp() + "/device"
    os.mknod(path, 0o20666, os.makedev(1, 1))
    return path
