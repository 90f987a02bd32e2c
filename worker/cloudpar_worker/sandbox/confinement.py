"""The mechanisms that confine the executors of a shared worker, and which of them this machine has."""

import os
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct, json

from . import landlock, shared_memory, syscall_filter, uid_pool
from .instance_metadata import Service, ports
from .namespaces import Namespaces


class Confinement(Struct, frozen=True):
    """The settings that a zygote needs to confine its executors.

    Attributes:
        tmp: The folder in which each executor has a private folder.
        executors: The number of executors that the worker has.
        readable, writable: Files and folders that tasks may read (`readable`), or may also change (`writable`), besides
            the system's files and the tasks' own files.
        protected: Processes to which tasks can send no signals: the agent, its parent and its process group.
        closed_ports: TCP ports to which tasks may not connect.
        network: With "outbound" tasks use the network of the machine. With "none" each executor has a network of its
            own with nothing but a loopback interface.
        processes: The limit of processes and threads of one executor. Executors without user ids of their own share the
            sum of these limits.
        file_bytes: The limit of one file's size.
        memory_bytes: The memory limit of one executor.
    """

    tmp: str
    executors: int = 1
    readable: list[str] = []
    writable: list[str] = []
    protected: list[int] = []
    closed_ports: list[int] = []
    network: Literal["outbound", "none"] = "outbound"
    processes: int = 512
    file_bytes: int = 16 << 30
    memory_bytes: int = 1 << 30


class Mechanism(Struct, frozen=True):
    """One mechanism that confines executors.

    Attributes:
        name: The mechanism's name, in a few words.
        there: Whether this machine has the mechanism. If so, and if it is `used`, the mechanism confines executors.
        gap: The things that tasks can do without the mechanism, and a way for the operator to get it.
        does: The effect of the mechanism here.
        costs: Whether the mechanism forbids something that tasks may need. If so, the worker prints `does` at its
            start.
        extra: Whether tasks are confined even without the mechanism, so that its absence is no reason for a warning.
        used: Whether workers use the mechanism.
    """

    name: str
    there: bool
    gap: str
    does: str = "confines tasks of a shared pool"
    costs: bool = False
    extra: bool = False
    used: bool = True


NAMED: Final = 5
"""The most sockets that a sentence names."""

OWN_USERS: Final = "a user for each executor"
SIGNALS: Final = "Landlock for signals"
NO_NETWORK: Final = "a network namespace for each executor"
OFFLINE: Final = "accounts without a network"

_ONE_USER: Final = (
    "executors share one user and its limits, and their tasks have no shared memory, and may change modes, groups, "
    "times and extended attributes of its files, such that others may read them: start the worker as root, as its "
    "container does, with a Python that every user may read"
)
_ROOT: Final = (
    "if all tasks are yours, add --isolation own. If they belong to several people, {fix}; or start the worker as an "
    "ordinary user. Otherwise tasks would be root's, read what it may of /etc, such as passwords, and change modes of "
    "its files"
)


def encode(confinement: Confinement) -> str:
    """Encode the settings as an argument of a zygote."""
    return json.encode(confinement).decode()


def decode(text: str) -> Confinement:
    """Decode what `encode` made."""
    return json.decode(text, type=Confinement)


def mechanisms(tmp: str, answering: Sequence[Service], sockets: Sequence[str]) -> list[Mechanism]:
    """Return all mechanisms, and whether each works here. The call may fork: make it only in a process with one thread.

    Args:
        tmp: As in Confinement.
        answering: The metadata services that answer here.
        sockets: Sockets of other programs to which every user may connect.
    """
    version = landlock.version()
    fix = uid_pool.obstacle(tmp)
    gap = _ONE_USER if os.geteuid() else _ROOT.format(fix=fix)
    return [
        Mechanism(OWN_USERS, not fix, gap),
        Mechanism(
            "Landlock for files",
            version > 0,
            "tasks read what their user may read: use a kernel of version 5.13 or newer with Landlock enabled",
        ),
        Mechanism(
            SIGNALS,
            version >= landlock.SCOPED,
            "tasks of one user can kill each other's executors, and the worker: use a kernel of version 6.12 or newer",
        ),
        Mechanism(
            "Landlock for TCP ports",
            version >= landlock.NETWORKED,
            "tasks can take the port of a service that restarts, such as the master, and the worker cannot close the "
            "port of instance metadata: use a kernel of version 6.7 or newer",
            f"tasks listen only at ports that the kernel chooses, and connect to no closed port (version {version})",
            extra=True,
        ),
        Mechanism(
            "seccomp",
            syscall_filter.available(),
            "tasks may use all system calls: use a kernel with seccomp filters, on x86-64 or ARM64",
        ),
        _metadata(answering),
        _sockets(sockets, own_users=not fix),
        _own_shared_memory(own_users=not fix),
        *_namespaces(),
        _offline(own_users=not fix),
    ]


def _offline(*, own_users: bool) -> Mechanism:
    # If executors have no users of their own, and the kernel has no Landlock, a task could change files of the worker's
    # user. Other programs of this user, which have a network, could then run the task's code.
    return Mechanism(
        OFFLINE,
        syscall_filter.available() and (own_users or landlock.version() > 0),
        "this worker gets no tasks of accounts that have `--network none`: use Linux 5.13 or newer with Landlock and "
        "seccomp filters, on x86-64 or ARM64",
        "tasks of accounts with `--network none` make no sockets",
        extra=True,
    )


def _own_shared_memory(*, own_users: bool) -> Mechanism:
    return Mechanism(
        "shared memory for each executor",
        own_users and shared_memory.own_is_possible(),
        "executors with users of their own share one /dev/shm, in which tasks can make files but no folders, and in "
        "which one account can use up the space: start the worker as root with the capability SYS_ADMIN",
        extra=True,
    )


def _namespaces() -> list[Mechanism]:
    here = Namespaces(network=True)
    return [
        Mechanism(
            "an IPC namespace for each executor",
            here.has_ipc,
            "executors share the IPC objects of the machine, which seccomp closes to tasks: start the worker as root "
            "with the capabilities SYS_ADMIN and NET_ADMIN",
            extra=True,
        ),
        Mechanism(
            NO_NETWORK,
            here.has_network,
            "a worker with --network none does not start here: start it as root with the capabilities SYS_ADMIN and "
            "NET_ADMIN, or let its user make user namespaces (sysctl user.max_user_namespaces, the system call filter "
            "of its container)",
            "a worker with --network none keeps tasks from the network",
            extra=True,
        ),
    ]


def _sockets(found: Sequence[str], *, own_users: bool) -> Mechanism:
    closed = landlock.version() >= landlock.RESOLVING
    refused = not own_users and syscall_filter.available()
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return Mechanism(
        "sockets of other programs out of reach",
        closed or refused or not found,
        f"tasks can connect to {', '.join(found[:NAMED])}{more}, as every user may: end these programs, close the "
        "sockets' folders to other users, run the worker in its container, or use a kernel of version 7.1 or newer",
        "closes them to tasks" if closed else "tasks make no Unix sockets but pairs" if refused else "there are none",
    )


def _metadata(answering: Sequence[Service]) -> Mechanism:
    hosts, closed = ", ".join(each.host for each in answering), closed_ports(answering)
    does = (
        f"tasks cannot connect to TCP port {' and '.join(map(str, closed))} (as for http://), because instance "
        f"metadata answers here ({hosts}): to allow it, block these addresses by a firewall and restart the worker"
    )
    return Mechanism(
        "instance metadata out of reach",
        bool(closed) or not answering,
        f"tasks get the credentials of this machine's role from {hosts}: block these addresses by a firewall, or "
        "run the worker in a container with a hop limit of 1, as our stack does, or on Linux 6.7 or newer",
        does if closed else "none answers here",
        bool(closed),
    )


def closed_ports(answering: Sequence[Service]) -> list[int]:
    """Return the ports to close to tasks; empty if Landlock cannot limit ports here, or if seccomp is missing.

    Without seccomp, tasks could avoid Landlock's rules on ports.
    """
    return ports(answering) if landlock.version() >= landlock.NETWORKED and syscall_filter.available() else []


def gaps(found: list[Mechanism]) -> list[Mechanism]:
    """Return the mechanisms that executors need and that are missing here.

    Executors with user ids of their own need no limit on signals.
    """
    kept = has_own_users(found)
    missing = [each for each in found if not each.there and not each.extra]
    return [each for each in missing if not (kept and each.name == SIGNALS)]


def extras(found: list[Mechanism]) -> str:
    """Return the sentence about missing mechanisms that go beyond what the worker promises; "" if none is missing."""
    names = ", ".join(each.name for each in found if each.extra and not each.there)
    return f"this machine does not offer {names}; `cloudpar doctor` says what that means" if names else ""


def has_own_users(found: list[Mechanism]) -> bool:
    """Whether each executor gets a user id of its own, according to these mechanisms."""
    return any(each.there for each in found if each.name == OWN_USERS)


def keeps_offline(found: list[Mechanism]) -> bool:
    """Whether the worker can keep the tasks of an account from the network, according to these mechanisms."""
    return any(each.there for each in found if each.name == OFFLINE)


def refusal(found: list[Mechanism], network: str = "outbound") -> str | None:
    """Return the reason why a shared worker must not start here, with advice; None if it may start.

    There are two reasons. First, root starts the worker, and the worker cannot give executors user ids of their own, so
    tasks would run as root. Second, `network` is "none", and executors cannot have networks of their own, so tasks
    would use the machine's network.
    """
    open_to_root = [each for each in found if each.name == OWN_USERS and not each.there and os.geteuid() == 0]
    if open_to_root:
        return f"cannot give each executor a user of its own, so it does not start as root: {open_to_root[0].gap}"
    without = [each for each in found if each.name == NO_NETWORK and not each.there and network == "none"]
    return f"cannot keep tasks from the network: {without[0].gap}" if without else None


def sentence(missing: list[Mechanism]) -> str:
    """Return the sentence about missing mechanisms that the worker prints at its start."""
    return "tasks are confined without " + "; without ".join(f"{each.name} ({each.gap})" for each in missing)


def costs(found: list[Mechanism]) -> list[str]:
    """Return the sentences about what tasks cannot do; the worker prints them at its start."""
    return [each.does for each in found if each.there and each.costs]
