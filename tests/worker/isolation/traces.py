"""What is left of the tasks of a worker, as root and the kernel see it."""

import ctypes
import errno
import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

from cloudpar_worker.sandbox import uid_pool
from worker.isolation.leaving import key_of
from worker.isolation.shared import ONE_USER

PLACES: Final = ("/dev/shm", "/tmp", "/var/tmp", "/run", "/run/lock")
USERS: Final = range(ONE_USER, uid_pool.FIRST + uid_pool.NUMBER)


def named(mark: str, folder: Path, sockets: Collection[int] = ()) -> set[str]:
    """Find all that has a mark in its name, and the listening sockets with these inodes."""
    found = {str(path) for place in (*PLACES, folder) for path in _entries(Path(place)) if mark in path.name}
    found |= {f"{line} (socket)" for line in _lines("net/unix") if mark in line}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        found |= {f"{line} ({table})" for line in _lines(f"net/{table}")[1:] if int(line.split()[9]) in sockets}
    for process in psutil.process_iter():
        found |= {f"{text} (open in {process.pid})" for text in names_of_open_files(process.pid) if mark in text}
    return found | set(_kernel_objects(mark))


def of_worker(agent: int, zygote: int, folder: Path) -> dict[str, int]:
    """How many processes, folders and user ids a worker has, and how many descriptors its zygote has."""
    locks = [line.split() for line in _lines("locks")]
    return {
        "processes": len(psutil.Process(agent).children(recursive=True)),
        "folders": len(_entries(folder)),
        "user ids": sum(lock[4] == str(zygote) and lock[6].isdigit() and int(lock[6]) in USERS for lock in locks),
        "descriptors": psutil.Process(zygote).num_fds(),
    }


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _lines(name: str) -> list[str]:
    return Path("/proc", name).read_text(errors="replace").splitlines()


def names_of_open_files(pid: int) -> Iterator[str]:
    """The names of the files that a process has open or maps."""
    with suppress(OSError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                yield str(descriptor.readlink())
        yield from Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()


def _kernel_objects(mark: str) -> Iterator[str]:
    for kind in ("shm", "sem", "msg"):
        yield from (
            f"{line} ({kind})" for line in _lines(f"sysvipc/{kind}")[1:] if line.split()[0] == str(key_of(mark))
        )
    for line in _lines("key-users"):
        user, _, keys = line.replace(":", " ").split()[:3]
        if int(user) in USERS and not keys.startswith("0/"):
            yield f"{line} (keys)"
    libc = ctypes.CDLL("librt.so.1", use_errno=True)
    queue = libc.mq_open(f"/{mark}".encode(), os.O_RDONLY)
    if queue >= 0:
        os.close(queue)
    if queue >= 0 or ctypes.get_errno() not in {errno.ENOENT, errno.ENOSYS}:
        yield f"{mark} (queue)"
