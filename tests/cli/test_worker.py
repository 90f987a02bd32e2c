"""`cloudpar worker` waits for its master with --wait, restarts its agent, and drains when it ends."""

import re
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from cloudpar.cli.data_folder import ConnectionFile
from cloudpar.cli.up_announcement import with_tokens
from docs.pages import ROOT
from support.command import CLOUDPAR, cloudpar, environment
from support.gates import pass_gate, pipe
from support.up import Up, worker
from support.waiting import HANG_S

OWN = ["--executors", "1", "--isolation", "own"]
DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def test_a_worker_that_a_command_starts_joins_and_leaves(folder: Path) -> None:
    with Up(folder, workers=0) as up:
        with worker(up) as process, up.pool() as pool:
            assert list(pool.map(abs, [-1, -2])) == [1, 2]
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            commands = " ".join(" ".join(each.cmdline()) for each in family)
            assert up.connection["worker_token"] not in commands
            process.send_signal(signal.SIGTERM)
            assert process.wait(HANG_S) == 0
        _, alive = psutil.wait_procs(family[1:], timeout=HANG_S)
        assert not alive


@pytest.mark.parametrize("role", ["token", "admin_token", "unknown"])
def test_a_worker_with_a_token_of_another_role_is_refused(cluster: Up, role: str) -> None:
    token = cluster.connection.get(role, "unknown")
    refused = cloudpar("worker", "--endpoint", cluster.endpoint, "--token", token)
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)


def test_a_worker_without_a_token_says_where_it_is_kept(cluster: Up) -> None:
    refused = cloudpar("worker", "--endpoint", cluster.endpoint)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "keeps one as worker_token in connection.json of its data folder" in refused.stderr


def start(endpoint: str, token: str, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*CLOUDPAR, "worker", "--endpoint", endpoint, *options],
        env=environment(CLOUDPAR_WORKER_TOKEN=token), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def agent_of(process: "subprocess.Popen[str]") -> psutil.Process:
    return next(each for each in psutil.Process(process.pid).children() if "cloudpar_worker" in each.cmdline())


def test_a_worker_that_was_started_first_waits_for_its_master(folder: Path) -> None:
    with Up(folder, workers=0) as up:
        port, token = int(up.endpoint.rpartition(":")[2]), up.connection["worker_token"]
    with start(up.endpoint, token, *OWN, "--wait") as early:
        assert early.stderr is not None
        waiting = early.stderr.readline()
        assert re.match(rf"{DATE} cloudpar: waiting for a master at {up.endpoint} \(.*refused", waiting)
        with Up(folder, workers=0, port=port) as up:
            assert "working for" in early.stderr.readline()
            with up.pool() as pool:
                assert pool.submit(abs, -1).result() == 1
            early.terminate()
            early.communicate(timeout=HANG_S)
    assert early.returncode == 0


def test_a_worker_that_waits_ends_when_it_is_asked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:  # accepts connections and answers nothing
        with start(f"http://127.0.0.1:{server.getsockname()[1]}", "token", *OWN, "--wait") as process:
            assert process.stderr is not None
            assert "waiting for a master" in process.stderr.readline()
            process.terminate()
            process.communicate(timeout=HANG_S)
        assert process.returncode == 0


def test_a_worker_that_waits_is_refused_with_a_wrong_token(cluster: Up) -> None:
    refused = cloudpar("worker", "--endpoint", cluster.endpoint, "--token", "unknown", "--wait")
    assert (refused.returncode, refused.stderr.count("\n")) == (3, 1)


def test_an_agent_that_is_killed_is_started_again(folder: Path) -> None:
    with Up(folder, workers=0) as up, worker(up) as process, up.pool() as pool:
        assert process.stderr is not None
        for number in range(3):
            agent_of(process).kill()
            warning = process.stderr.readline()
            assert re.match(
                rf"{DATE} cloudpar: warning: the worker ended \(killed by SIGKILL\); starting it again", warning
            )
            assert "working for" in process.stderr.readline()
            assert pool.submit(abs, -number).result() == number


def test_an_agent_that_is_killed_while_it_drains_is_not_restarted(folder: Path, tmp_path: Path) -> None:
    running, gate = pipe(tmp_path / "running"), pipe(tmp_path / "never")
    with Up(folder, workers=0) as up, worker(up) as process:
        pool = up.pool()
        pool.starmap(pass_gate, [(running, gate)]).detach()
        pool.shutdown()
        Path(running).read_text()
        process.send_signal(signal.SIGTERM)
        assert process.stderr is not None
        assert "draining" in process.stderr.readline()
        agent_of(process).kill()
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 128 + signal.SIGKILL
    assert "the worker ended (killed by SIGKILL) before it had handed in everything" in errors


def commands(text: str) -> list[list[str]]:
    """Return the options of each `cloudpar worker` in a text, except those that name a master."""
    found = re.findall(r"cloudpar worker --endpoint \S+ (.+)", text)
    return [options.split() for options in found]


def test_the_worker_of_the_readme_starts_as_it_stands(folder: Path) -> None:
    """It also starts as root with a Python in a home folder, as in many containers."""
    (options,) = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    with Up(folder, workers=0) as up, start(up.endpoint, up.connection["worker_token"], *options) as process:
        assert process.stderr is not None
        assert "working for" in process.stderr.readline()
        process.terminate()
        process.communicate(timeout=HANG_S)
    connection = ConnectionFile(endpoint="http://127.0.0.1:1", token="t", worker_token="w", admin_token="a")
    assert commands(with_tokens(connection)) == [options]
