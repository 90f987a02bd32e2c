"""Tasks that try to leave something behind. Each gets a mark, which the name of everything that it leaves contains.

The kernel refuses some of these attempts, so each attempt may fail by itself.
"""

import ctypes
import mmap
import os
import platform
import select
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from cloudpar_worker.sandbox import syscall_filter

ARM: Final = platform.machine() != "x86_64"
EXIT, CLONE = (93, 220) if ARM else (60, 56)
CLONE_PARENT: Final = 0x8000
SET_NAME, SET_CHILD_SUBREAPER = 15, 36
CREATE: Final = 0o1600
"""IPC_CREAT, with a mode."""
SWARM: Final = 30
HOPS_S: Final = 120.0
ENTRIES: Final = 100


def key_of(mark: str) -> int:
    """The key of the System V objects with a mark."""
    return crc32(mark.encode()) >> 1


def ignore_signals() -> None:
    for number in range(1, 32):
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_IGN)


def stay(stays: Callable[[Callable[[], Any]], Any]) -> None:
    """Run code in a daemon that ignores all signals, and return once it has called what it gets, or has ended."""
    reading, writing = os.pipe()
    if not os.fork():
        try:
            os.setsid()
            if os.fork():
                os._exit(0)
            ignore_signals()
            _held = stays(lambda: os.write(writing, b"."))
            os.write(writing, b".")
            while True:
                signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    os.wait()


def marked_file(mark: str) -> Any:
    """Open a file in the private folder. A process that keeps it open can be found by its name."""
    return Path(tempfile.gettempdir(), mark).open("wb")


def daemon(mark: str) -> None:
    stay(lambda _: marked_file(mark))


def swarm(mark: str) -> None:
    for _ in range(SWARM):
        if not os.fork():
            held = marked_file(mark)
            os.setsid()
            while held:
                signal.pause()


def hopper(mark: str) -> None:
    """A process that moves on to a new process id as fast as it can.

    It ends by itself: a test run that is killed would leave it, and it uses a core.
    """
    until = time.monotonic() + HOPS_S

    def hops(ready: Callable[[], Any]) -> None:
        held = marked_file(mark)
        ready()
        while held and time.monotonic() < until:
            try:
                if os.fork():
                    os._exit(0)
            except OSError:
                continue
            with suppress(OSError):
                os.setsid()

    stay(hops)


def stopped(mark: str) -> None:
    def stops(ready: Callable[[], Any]) -> None:
        held = marked_file(mark)
        ready()
        while held:
            os.kill(os.getpid(), signal.SIGSTOP)

    stay(stops)


def leader_ended(mark: str) -> None:
    """A process whose first thread has ended, while another thread lives."""

    def ends(ready: Callable[[], Any]) -> None:
        held = marked_file(mark)
        threading.Thread(target=lambda: threading.Event().wait(), args=()).start()
        ready()
        while held:
            ctypes.CDLL(None).syscall(EXIT, 0)

    stay(ends)


def siblings(mark: str) -> None:
    """A process whose parent is the parent of the executor."""
    held = marked_file(mark)
    libc = ctypes.CDLL(None)
    if libc.syscall(CLONE, CLONE_PARENT | signal.SIGCHLD, 0, 0, 0, 0) == 0:
        while held:
            libc.pause()


def subreaper(mark: str) -> None:
    """A process that becomes the parent of all that its descendants leave."""

    def reaps(_: Any) -> Any:
        ctypes.CDLL(None).prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        for _number in range(3):
            if not os.fork():
                stay(lambda _: marked_file(mark))
                os._exit(0)
        return marked_file(mark)

    stay(reaps)


def odd_names(mark: str) -> None:
    """Processes whose names are no text, or look like fields of /proc."""

    def renames(name: bytes) -> Any:
        ctypes.CDLL(None).prctl(SET_NAME, name, 0, 0, 0)
        return marked_file(mark)

    for name in (b"\xff\xfe\n\t", b") Z 1 1 1 1", b"a b) (c", b""):
        stay(lambda _, name=name: renames(name))  # type: ignore[misc]
    renames(b"\xff) R 0\n")


def thread(mark: str) -> None:
    """A thread of the executor that computes on."""
    held = marked_file(mark)

    def computes() -> None:
        while held:
            pass

    threading.Thread(target=computes, daemon=True).start()


def listeners(mark: str) -> list[int]:
    """Ports and names of sockets. Returns the numbers of their inodes, since a port has no name."""
    made: list[socket.socket] = []

    def listens(family: int, kind: int, address: Any) -> None:
        with suppress(OSError):
            made.append(socket.socket(family, kind))
            made[-1].bind(address)
            if kind == socket.SOCK_STREAM:
                made[-1].listen()

    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        listens(socket.AF_INET, kind, ("127.0.0.1", 0))
        listens(socket.AF_INET6, kind, ("::1", 0))
        listens(socket.AF_UNIX, kind, f"\0{mark}-{kind}")
        listens(socket.AF_UNIX, kind, f"{tempfile.gettempdir()}/{mark}-{kind}")
        listens(socket.AF_UNIX, kind, f"/dev/shm/{mark}-{kind}")
    stay(lambda _: (marked_file(mark), made))
    return [os.fstat(each.fileno()).st_ino for each in made]


def in_flight(mark: str) -> None:
    """A socket that no process has: it is on its way to a socket that is itself on its way."""
    one, two = socket.socketpair()
    with one, two, suppress(OSError), socket.socket(socket.AF_UNIX) as named:
        named.bind(f"\0{mark}-in-flight")
        named.listen()
        socket.send_fds(one, [b"."], [one.fileno(), two.fileno(), named.fileno()])


def watchers(mark: str) -> None:
    """Objects of the kernel that count for a user: watches, timers, message queues of sockets."""

    def watches(_: Any) -> Any:
        libc = ctypes.CDLL(None)
        held: list[Any] = [marked_file(mark), *socket.socketpair()]
        for one in (select.epoll() for _number in range(10)):
            one.register(held[1].fileno())
            held.append(one)
        with suppress(OSError):
            watching = libc.inotify_init1(0)
            libc.inotify_add_watch(watching, tempfile.gettempdir().encode(), 0xFFF)
        libc.eventfd(0, 0)
        libc.timerfd_create(1, 0)
        libc.signal(signal.SIGUSR1, 1)
        return held

    stay(watches)


def kernel_objects(mark: str) -> None:
    """Objects that need no process: System V memory, semaphores and queues, POSIX queues, keys."""
    libc, key, name = ctypes.CDLL(None), key_of(mark), mark.encode()
    call = {name: numbers[ARM] for name, numbers in syscall_filter.REFUSED.items()}
    libc.syscall(call["shmget"], key, 4096, CREATE)
    libc.syscall(call["semget"], key, 1, CREATE)
    libc.syscall(call["msgget"], key, CREATE)
    libc.syscall(call["mq_open"], name, os.O_CREAT | os.O_RDWR, 0o600, None)
    for ring in (-3, -4, -5):
        libc.syscall(call["add_key"], b"user", name, name, len(name), ring)


def memory_files(mark: str) -> None:
    def holds(_: Any) -> Any:
        with suppress(OSError):
            held = os.memfd_create(mark)
            os.ftruncate(held, 1 << 20)
        return marked_file(mark)

    stay(holds)


def unlinked_files(mark: str) -> None:
    """Files that have no name any longer, open and mapped."""

    def holds(_: Any) -> Any:
        held: list[Any] = []
        for place in (tempfile.gettempdir(), "/dev/shm"):
            with suppress(OSError), Path(place, f"{mark}-unlinked").open("w+b") as file:
                Path(file.name).unlink()
                file.truncate(1 << 16)
                held += [os.dup(file.fileno()), mmap.mmap(file.fileno(), 1 << 16)]
        return held

    stay(holds)


def shared_memory(mark: str) -> None:
    for number in range(ENTRIES):
        path = Path(f"/dev/shm/{mark}-{number}")
        with suppress(OSError):
            if number % 4 == 0:
                path.mkdir()
                (path / "file").touch()
                path.chmod(0)
            elif number % 4 == 1:
                os.mkfifo(path)
            elif number % 4 == 2:
                path.symlink_to("/usr")
            else:
                path.write_bytes(bytes(1 << 12))


def prepared_names(mark: str) -> None:
    """Folders with the names that a cleanup could need, and names that are no text."""
    for place in (f"/dev/shm/{mark}-prepared", f"/var/tmp/{mark}-prepared", f"/tmp/{mark}-prepared", mark):
        for pid in range(os.getpid(), os.getpid() + ENTRIES):
            with suppress(OSError):
                Path(place, f".{pid}-0/full").mkdir(parents=True)
        with suppress(OSError):
            Path(os.fsdecode(place.encode() + b"/\xff\n")).mkdir(mode=0o500)
            Path(place).chmod(0)


def crash(mark: str) -> None:
    daemon(mark)
    shared_memory(mark)
    os._exit(3)


def kill_itself(mark: str) -> None:
    daemon(mark)
    shared_memory(mark)
    os.kill(os.getpid(), signal.SIGKILL)


def endless(mark: str) -> None:
    daemon(mark)
    shared_memory(mark)
    ignore_signals()
    while True:
        pass


TRICKS: Final[tuple[Callable[[str], Any], ...]] = (
    daemon, swarm, hopper, stopped, leader_ended, siblings, subreaper, odd_names, thread, listeners, in_flight,
    watchers, kernel_objects, memory_files, unlinked_files, shared_memory, prepared_names, crash, kill_itself, endless,
)  # fmt: skip
ENDS: Final[dict[Callable[[str], Any], str]] = {crash: "crashed", kill_itself: "crashed", endless: "timeout"}
"""The outcomes of tasks that do not return."""
