"""The two programs of a cluster on this machine: how a master and an agent are started, for pools and commands."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .child import Child, Report
from .restart_policy import RestartPolicy

BACKLOG = 512


def default_workers() -> int:
    """One executor for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def listen(port: int = 0) -> socket.socket:
    """The socket of a master, bound in this process, so that it stays open while a master that died starts again.

    Args:
        port: 0: any free one.

    Raises:
        OSError: Another process listens on the port, or this one may not.
    """
    return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)


def master(
    data: Path, listening: socket.socket, config: Mapping[str, Any], report: Report, policy: RestartPolicy, *,
    new_secret: bool = False, log_path: Path | None = None,
) -> Child:  # fmt: skip
    """A master that is not started yet, with the socket of `listen`."""
    descriptor = listening.fileno()
    command = ["cloudpar_master", "--data", str(data), "--listen-fd", str(descriptor), "--stdin"]
    # Harmless when a master that died starts again: by then the database knows the new secret.
    command += ["--new-secret"] if new_secret else []
    return Child("master", command, config, report, policy=policy, pass_fds=(descriptor,), log_path=log_path)


def agent(
    settings: Mapping[str, Any], report: Report, policy: RestartPolicy, *,
    environment: Mapping[str, str] | None = None, log_path: Path | None = None,
) -> Child:  # fmt: skip
    """An agent that is not started yet. Its executors end with it."""
    # Its token is a setting and no argument: every user of the machine may read the arguments of a process.
    command = ["cloudpar_worker", "--stdin"]
    return Child("worker", command, settings, report, policy=policy, environment=environment, log_path=log_path)
