"""Adds notes to exceptions that a sandbox may have caused. A note says what tasks may not do here, and why."""

import errno
import os
import platform
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from cloudpar_worker.sandbox.shared_memory import SHARED_MEMORY

from .failures import add_note

_ITS_MODULES: Final = frozenset({"synchronize", "shared_memory"})
"""The names of modules in multiprocessing, and in its copies in other packages, that need shared memory."""
_CAUSES: Final = 20
"""The most exceptions of a chain that `explain` examines. A chain is an exception, its cause, that cause's cause, ...
"""


class Refusals(NamedTuple):
    """The rules of a confined executor for its tasks.

    Attributes:
        closed_ports: TCP ports to which tasks may not connect.
        shared_memory: Whether tasks may use shared memory, and therefore locks between processes.
        files: Whether files are limited: tasks may use only the system's files, their own files, and those that the
            operator has opened to tasks.
        network: Whether tasks may use the network of the machine.
        offline: Whether tasks may make no sockets, because their account may not use the network.
        common_memory: Whether executors share the folder of shared memory. If so, tasks may make only files in it, and
            no folders or sockets.
    """

    closed_ports: Sequence[int] = ()
    shared_memory: bool = True
    files: bool = False
    network: bool = True
    offline: bool = False
    common_memory: bool = False

    def explain(self, error: BaseException) -> None:
        """Add notes to an exception that one of these rules may have caused."""
        notes: list[str] = []
        with suppress(BaseException):  # an exception's own code may raise anything
            notes += filter(None, map(self._why, _causes(error)))
        for note in notes:
            add_note(error, note)

    def _why(self, error: BaseException) -> str | None:
        if self.offline and _wants_socket(error):
            return _offline()
        if not self.network and _wants_network(error):
            return _no_network()
        return self._why_denied(error)

    def _why_denied(self, error: BaseException) -> str | None:
        if type(error) is not PermissionError or error.errno != errno.EACCES:
            return None
        if _wants_shared_memory(error):
            return _only_files() if self.common_memory else None if self.shared_memory else _no_shared_memory()
        if self.files and "attempting to bind on address" in str(error):
            return _no_port()
        if self.closed_ports and error.filename is None:  # the error of a file would name the file
            return _no_connection(self.closed_ports)
        if self.files and error.filename is not None and not _is_own(error.filename):
            return _closed(error.filename)
        return None


def _wants_shared_memory(error: OSError) -> bool:
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    module = trace.tb_frame.f_globals.get("__name__", "") if trace else ""
    file = error.filename if isinstance(error.filename, str) else ""
    return module.rpartition(".")[2] in _ITS_MODULES or file.startswith(SHARED_MEMORY + os.sep)


def _wants_network(error: BaseException) -> bool:
    unreachable = isinstance(error, OSError) and error.errno in {errno.ENETUNREACH, errno.EADDRNOTAVAIL}
    return unreachable or isinstance(error, socket.gaierror)


def _wants_socket(error: BaseException) -> bool:
    if isinstance(error, socket.gaierror):
        return True
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    made = trace is not None and trace.tb_frame.f_globals.get("__name__") == "socket"
    return made and isinstance(error, PermissionError) and error.errno == errno.EPERM


def _is_own(filename: object) -> bool:
    """Whether a file lies in the executor's private folder, where every operation is allowed."""
    own = os.environ.get("TMPDIR")
    return own is not None and os.path.realpath(os.fsdecode(filename)).startswith(os.path.realpath(own) + os.sep)  # type: ignore[arg-type]


def _closed(filename: object) -> str:
    return (
        f"Tasks on the worker on {platform.node()} are confined, since the worker is shared: {os.fsdecode(filename)!r} "  # type: ignore[arg-type]
        "is closed to them. Its operator opens files and folders to tasks by `cloudpar worker --readable PATH` (and "
        "--writable PATH); a worker whose tasks are all its operator's own needs no confinement: --isolation own "
        "(docs/isolation.md). Or send what is in the file as task data."
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes or contexts, at most _CAUSES of them, because they may form a cycle."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__


def _no_shared_memory() -> str:
    return (
        f"On the worker on {platform.node()} tasks have no shared memory, and so no pools, queues and locks of "
        "multiprocessing, since its executors share one user. Use threads or programs (subprocess), or ask its "
        "operator to start it as root (docs/isolation.md)."
    )


def _only_files() -> str:
    return (
        f"On the worker on {platform.node()} tasks can make files in {SHARED_MEMORY}, but no folders and sockets, "
        "since its executors share this place: use the folder that tempfile.gettempdir() returns (docs/isolation.md)."
    )


def _no_connection(closed_ports: Sequence[int]) -> str:
    return (
        f"If this was a connection: tasks on the worker on {platform.node()} cannot connect to TCP port "
        f"{' and '.join(map(str, closed_ports))}, because its instance metadata answers there. Use https://, or ask "
        "its operator to block the metadata addresses by a firewall (docs/isolation.md)."
    )


def _no_network() -> str:
    return (
        f"Tasks on the worker on {platform.node()} have no network, because its operator started it with "
        "--network none (docs/isolation.md). Send what the task needs as task data."
    )


def _offline() -> str:
    return (
        "The operator of the pool lets tasks of this account make no sockets (cloudpar account set --network none; "
        "docs/isolation.md). Send what the task needs as task data, or ask the operator for --network outbound."
    )


def _no_port() -> str:
    return (
        f"Tasks on the worker on {platform.node()} are confined, since the worker is shared: they can listen only at "
        "TCP ports that the system chooses (port 0), so that none takes the port of a service (docs/isolation.md)."
    )
