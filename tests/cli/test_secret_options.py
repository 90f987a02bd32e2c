"""Tokens do not stay among the arguments of processes; otherwise a warning names the process."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.command import CLOUDPAR, environment
from support.up import Up
from support.waiting import HANG_S

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere tasks are not confined")
TOKEN = "the-token-of-an-account"


@contextmanager
def asking(*command: str) -> Iterator[subprocess.Popen[str]]:
    """Start a command that waits for the answer of a silent master; end it with its children at last."""
    with socket.create_server(("127.0.0.1", 0)) as master:
        master.settimeout(HANG_S)
        endpoint = f"http://127.0.0.1:{master.getsockname()[1]}"
        process = subprocess.Popen(
            [*command, "--endpoint", endpoint],
            env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        with process:
            line, _ = master.accept()
            with line:
                yield process
            os.killpg(process.pid, signal.SIGKILL)


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        ("packages", "list", "--token", TOKEN),
        ("top", f"--token={TOKEN}"),
        ("account", "list", "--admin-token", TOKEN),
        ("worker", "--token", TOKEN),
    ],
    ids=lambda command: command[0],
)
def test_a_token_is_gone_from_the_arguments_once_it_is_read(command: tuple[str, ...]) -> None:
    with asking(*CLOUDPAR, *command) as process:
        arguments = Path(f"/proc/{process.pid}/cmdline").read_text()
    assert TOKEN not in arguments
    assert "*" * len(TOKEN) in arguments


@LINUX
@pytest.mark.parametrize("given", ["option", "variable"])
def test_a_worker_says_who_else_has_its_token_among_the_arguments(cluster: Up, given: str) -> None:
    token = cluster.connection["worker_token"]
    options = ["--token", token] if given == "option" else []
    variables = {} if given == "option" else {"CLOUDPAR_WORKER_TOKEN": token}
    with subprocess.Popen(
        ["/bin/sh", "-c", '"$@"; :', "-", *CLOUDPAR, "worker", "--endpoint", cluster.endpoint, *options],
        env=environment(**variables), stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        warning = process.stderr.readline()
        os.killpg(process.pid, signal.SIGKILL)
    warned = f"among the arguments of sh (pid {process.pid}): leave out --token" in warning
    assert warned == (given == "option")
    assert warning
