"""What keeps the executors of a shared pool to themselves, and which of it this machine has."""

import os
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, json

from . import landlock, syscall_filter, uid_pool
from .instance_metadata import Service, ports


class Confinement(Struct, frozen=True):
    """What a zygote is told about its executors.

    Attributes:
        tmp: The folder in which each has a private one.
        executors: How many there are.
        readable, writable: Files and folders besides the system's.
        protected: Processes that get no signals: the agent, and what looks after it.
        closed_ports: Of TCP, to which they may not connect.
        processes: Processes and threads of one executor.
        file_bytes: The size of one file.
    """

    tmp: str
    executors: int = 1
    readable: list[str] = []
    writable: list[str] = []
    protected: list[int] = []
    closed_ports: list[int] = []
    processes: int = 512
    file_bytes: int = 16 << 30


class Mechanism(Struct, frozen=True):
    """One of what the kernel offers.

    Attributes:
        name: In a few words.
        there: Whether it holds executors here.
        gap: What is open without it, and the mend.
        does: What it does here.
        costs: Whether tasks might want what they lose by it: then the worker says at its start what it does.
    """

    name: str
    there: bool
    gap: str
    does: str = "confines tasks of a shared pool"
    costs: bool = False


OWN_USERS: Final = "a user for each executor"
SIGNALS: Final = "Landlock for signals"

_ONE_USER: Final = (
    "executors share one user and its limits, and their tasks have no shared memory, and may change modes, groups, "
    "times and extended attributes of its files, such that others may read them: start the worker as root, as its "
    "container does, with a Python that every user may read"
)
_ROOT: Final = (
    "if all tasks are yours, add --isolation own. If they are of several people, {mend}; or start the worker as an "
    "ordinary user. Otherwise tasks would be root's, read what it may of /etc, such as passwords, and change modes of "
    "its files"
)


def encode(confinement: Confinement) -> str:
    """As an argument of a zygote."""
    return json.encode(confinement).decode()


def decode(text: str) -> Confinement:
    """What `encode` made."""
    return json.decode(text, type=Confinement)


def mechanisms(tmp: str, answering: Sequence[Service]) -> list[Mechanism]:
    """All of them, as this interpreter finds them here. Forks, so only for processes of one thread.

    Args:
        tmp: See Confinement.
        answering: Services of metadata that answer here.
    """
    version = landlock.version()
    mend = uid_pool.obstacle(tmp)
    gap = _ONE_USER if os.geteuid() else _ROOT.format(mend=mend)
    return [
        Mechanism(OWN_USERS, not mend, gap),
        Mechanism(
            "Landlock for files",
            version > 0,
            "tasks read what their user may read: take a kernel of version 5.13 or newer with Landlock switched on",
        ),
        Mechanism(
            SIGNALS,
            version >= landlock.SCOPED,
            "tasks of one user may end each other's executors, and the worker: take a kernel of version 6.12 or newer",
        ),
        Mechanism(
            "seccomp",
            syscall_filter.available(),
            "all system calls are open to tasks: take a kernel with seccomp filters, on x86-64 or ARM64",
        ),
        _metadata(answering),
    ]


def _metadata(answering: Sequence[Service]) -> Mechanism:
    hosts, closed = ", ".join(each.host for each in answering), closed_ports(answering)
    does = (
        f"tasks have no connections to TCP port {' and '.join(map(str, closed))}, as for http://, since instance "
        f"metadata answer here ({hosts}): refuse these by a firewall, start the worker again, and tasks have them"
    )
    return Mechanism(
        "instance metadata out of reach",
        bool(closed) or not answering,
        f"tasks get the credentials of this machine's role from {hosts}: refuse these by a firewall, or start the "
        "worker in a container with a hop limit of 1, as our stack does, or on a kernel of version 6.7 or newer",
        does if closed else "none answer here",
        bool(closed),
    )


def closed_ports(answering: Sequence[Service]) -> list[int]:
    """To which tasks must not connect, where that can be had: without the filter they would pass Landlock."""
    return ports(answering) if landlock.version() >= landlock.NETWORKED and syscall_filter.available() else []


def gaps(found: list[Mechanism]) -> list[Mechanism]:
    """What is missing here. UidPool of their own need nothing more to be kept from each other's processes."""
    kept = has_own_users(found)
    return [each for each in found if not each.there and not (kept and each.name == SIGNALS)]


def has_own_users(found: list[Mechanism]) -> bool:
    """Whether each executor here has one."""
    return any(each.there for each in found if each.name == OWN_USERS)


def refusal(found: list[Mechanism]) -> str | None:
    """Why no worker of a shared pool may start here, with the mends: its tasks would be root's."""
    open_to_root = [each for each in found if each.name == OWN_USERS and not each.there and os.geteuid() == 0]
    return (
        f"cannot give each executor a user of its own, so it does not start as root: {open_to_root[0].gap}"
        if open_to_root
        else None
    )


def sentence(missing: list[Mechanism]) -> str:
    """For the one line at the start."""
    return "tasks are confined without " + "; without ".join(f"{each.name} ({each.gap})" for each in missing)


def costs(found: list[Mechanism]) -> list[str]:
    """What tasks lose, for a line each at the start."""
    return [each.does for each in found if each.there and each.costs]
