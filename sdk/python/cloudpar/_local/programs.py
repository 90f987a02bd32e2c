"""Starts the two programs of a cluster on this machine, a master and an agent, for pools and commands."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .child import Child, Report
from .restart_policy import RestartPolicy

BACKLOG = 512


def default_workers() -> int:
    """The default number of executors: one for each core that this process may use (on macOS, for each core)."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def listen(port: int = 0) -> socket.socket:
    """Open the socket for a master, on 127.0.0.1.

    The socket belongs to this process, so it stays open while a master that has ended is started again.

    Args:
        port: The port to listen on; 0 means any free port.

    Raises:
        OSError: Another process listens on the port, or this process may not use it.
    """
    return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)


def master(
    data: Path, listening: socket.socket, config: Mapping[str, Any], report: Report, policy: RestartPolicy, *,
    new_secret: bool = False, environment: Mapping[str, str] | None = None, log_path: Path | None = None,
) -> Child:  # fmt: skip
    """Return a master that is not started yet.

    Args:
        data: The master's data folder.
        listening: The socket from `listen`.
        config: The master's configuration, which is written to its standard input.
        report: Receives the process's events.
        policy: Decides about restarts.
        new_secret: Whether the master starts even if its database depends on a secret that is no longer in the folder.
        environment: The environment variables of the process; None means those of this process.
        log_path: The file that receives the standard error of the process; None means the standard error of this
            process.
    """
    descriptor = listening.fileno()
    command = ["cloudpar_master", "--data", str(data), "--listen-fd", str(descriptor), "--stdin"]
    # The option does no harm when a master that has ended is started again, because then the database depends on the
    # new secret.
    command += ["--new-secret"] if new_secret else []
    return Child(
        "master", command, config, report, policy=policy, pass_fds=(descriptor,), environment=environment,
        log_path=log_path,
    )  # fmt: skip


def agent(
    settings: Mapping[str, Any], report: Report, policy: RestartPolicy, *,
    environment: Mapping[str, str] | None = None, log_path: Path | None = None,
) -> Child:  # fmt: skip
    """Return an agent that is not started yet. Its executors end when the agent ends.

    Args:
        settings: The agent's settings, which are written to its standard input.
        report: Receives the process's events.
        policy: Decides about restarts.
        environment: The environment variables of the process; None means those of this process.
        log_path: The file that receives the standard error of the process; None means the standard error of this
            process.
    """
    # The token is a setting, not an argument: every user of the machine may read the arguments of a process.
    command = ["cloudpar_worker", "--stdin"]
    return Child("worker", command, settings, report, policy=policy, environment=environment, log_path=log_path)
