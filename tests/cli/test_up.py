"""`cloudpar up` from its ready line to its end, with the errors in between."""

import json
import os
import pty
import signal
import socket
import stat
import subprocess
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from cloudpar import Pool
from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar._local.restart_policy import MOST
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from support.command import CLOUDPAR, cloudpar, environment
from support.gates import pass_gate, pipe
from support.up import Up
from support.waiting import HANG_S, until

DATA = Upload(kind="data", size=1, crc32=0)

DRAINING = "cloudpar: draining; Ctrl-C again stops at once"


def test_ready_means_that_tasks_run(folder: Path) -> None:
    with Up(folder, workers=1) as up:
        assert set(up.connection) == {"endpoint", "token", "worker_token", "admin_token"}
        assert stat.S_IMODE((folder / "connection.json").stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        with up.pool() as pool:
            assert list(pool.map(abs, range(-3, 0))) == [3, 2, 1]


def test_no_client_gets_links_to_files_of_its_master(folder: Path) -> None:
    with Up(folder, workers=0) as up:
        asking = Connection(up.endpoint, up.connection["token"], RetryPolicy(HANG_S), PayloadFolder(str(folder)))
        (prepared,) = asking.call(routes.PREPARE_UPLOADS, PrepareUploads(uploads=[DATA])).uploads
        asking.close()
        assert prepared.link is not None
        assert prepared.link.url.startswith("/blobs/")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_everything(folder: Path, number: int) -> None:
    with Up(folder, workers=1) as up:
        children = psutil.Process(up.process.pid).children(recursive=True)
        assert len(children) >= 3  # master, agent, executor
        assert up.end(number) == (0, f"{DRAINING}\n")
        _, alive = psutil.wait_procs(children, timeout=HANG_S)
        assert not alive


def test_a_signal_drains_running_tasks_and_keeps_all_data(folder: Path, tmp_path: Path) -> None:
    running, gate = pipe(tmp_path / "running"), pipe(tmp_path / "gate")
    with Up(folder, workers=1) as up:
        pool = up.pool()
        results = pool.starmap(pass_gate, [(running, gate)])
        package_id = results.detach()
        pool.shutdown()
        Path(running).read_text()
        up.process.send_signal(signal.SIGINT)
        Path(gate).write_text("open")
        assert up.process.wait(HANG_S) == 0
        before = up.connection
    with Up(folder, workers=0) as up:
        assert up.connection | {"endpoint": ""} == before | {"endpoint": ""}
        with up.pool() as pool:
            assert pool.attach(package_id).results() == ["open"]


def test_a_second_signal_stops_at_once(folder: Path, tmp_path: Path) -> None:
    running, gate = pipe(tmp_path / "running"), pipe(tmp_path / "never")
    with Up(folder, workers=1) as up:
        pool = up.pool()
        pool.starmap(pass_gate, [(running, gate)]).detach()
        pool.shutdown()
        Path(running).read_text()
        up.process.send_signal(signal.SIGINT)
        assert up.process.stderr is not None
        assert up.process.stderr.readline().strip() == DRAINING
        assert up.end(signal.SIGINT)[0] == 0


@pytest.mark.parametrize("module", ["cloudpar_master", "cloudpar_worker"])
def test_a_process_that_crashes_is_started_again(folder: Path, module: str) -> None:
    with Up(folder, workers=1) as up:
        crashed = up.child(module)
        crashed.kill()
        with up.pool() as pool:
            assert list(pool.map(abs, [-1, -2])) == [1, 2]
        code, errors = up.end()
    assert code == 0
    assert "ended (killed by SIGKILL); starting it again" in errors


def test_tasks_that_kill_the_worker_do_not_stop_the_master(folder: Path) -> None:
    with Up(folder, workers=1) as up, Pool(up.endpoint, up.connection["token"], patience_s=5) as pool:
        for _ in range(MOST + 1):
            killed = up.child("cloudpar_worker")
            killed.kill()
            killed.wait(HANG_S)  # until the killed agent has ended, it may still be handed the task and hold its lease
            assert pool.submit(abs, -1).result() == 1
        assert up.process.poll() is None


def test_without_executors_there_is_no_agent(folder: Path) -> None:
    with Up(folder, workers=0) as up:
        children = psutil.Process(up.process.pid).children(recursive=True)
        assert not any("cloudpar_worker" in child.cmdline() for child in children)


def test_killing_up_ends_its_children(folder: Path) -> None:
    with Up(folder, workers=1) as up:
        children = psutil.Process(up.process.pid).children(recursive=True)
        up.process.kill()
        _, alive = psutil.wait_procs(children, timeout=HANG_S)
        assert not alive


def test_a_port_that_is_taken_is_an_error(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = cloudpar("up", "--workers", "0", "--port", str(port), "--data", str(folder))
    assert ended.returncode == 7
    assert f"port {port} is in use" in ended.stderr
    assert "--port 0" in ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize("named", ["/proc/x", "/proc/x/y", "file/x"])
def test_a_folder_that_cannot_be_made(tmp_path: Path, named: str) -> None:
    (tmp_path / "file").touch()
    where = tmp_path / named
    ended = cloudpar("up", "--workers", "0", "--port", "0", "--data", str(where))
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert f"error: the data folder {where} cannot be made or written (" in ended.stderr
    assert "name one by --data" in ended.stderr
    assert "Errno" not in ended.stderr


def test_a_master_that_cannot_start_is_an_error(folder: Path) -> None:
    folder.mkdir()
    (folder / "connection.json").mkdir()
    ended = cloudpar("up", "--workers", "1", "--port", "0", "--data", str(folder))
    assert ended.returncode == 1
    assert "cloudpar: error: the master ended before it was ready" in ended.stderr


def test_without_its_secret_it_starts_only_with_an_option(folder: Path) -> None:
    with Up(folder, workers=1) as up, up.pool() as pool:
        assert pool.submit(abs, -1).result() == 1
    (folder / "secret").unlink()
    ended = cloudpar("up", "--workers", "1", "--port", "0", "--data", str(folder))
    assert ended.returncode == 1
    assert f"{folder / 'secret'} is lost or broken" in ended.stderr
    with Up(folder, workers=1, more=["--new-secret"]) as up, up.pool() as pool:
        assert pool.submit(abs, -2).result() == 2
        up.child("cloudpar_master").kill()  # the restarted master reports the same
        assert pool.submit(abs, -3).result() == 3


def until_ready(folder: Path, output: int) -> "subprocess.Popen[str]":
    command = [*CLOUDPAR, "up", "--workers", "1", "--port", "0", "--data", str(folder)]
    return subprocess.Popen(command, env=environment(), stdout=output, stderr=subprocess.DEVNULL, text=True)


def printed(lines: Iterable[str]) -> list[str]:
    """Return what `up` prints until it is ready."""
    found: list[str] = []
    for line in lines:
        found.append(line.strip())
        if line.startswith("Ctrl-C"):
            return found
    raise AssertionError(found)


def test_commands_that_up_prints_at_a_terminal_can_be_pasted(folder: Path) -> None:
    terminal, output = pty.openpty()
    with os.fdopen(terminal) as lines, until_ready(folder, output) as up:
        pairs = [line.removeprefix("export ").partition("=") for line in printed(lines)]
        exported = {name: value for name, _, value in pairs}
        with Pool(exported["CLOUDPAR_ENDPOINT"], exported["CLOUDPAR_TOKEN"], progress=False) as pool:
            assert pool.submit(abs, -1).result() == 1
        os.close(output)
        up.terminate()
        assert up.wait(HANG_S) == 0


def test_up_prints_no_token_into_a_log(folder: Path) -> None:
    with until_ready(folder, subprocess.PIPE) as up:
        assert up.stdout is not None
        text = "\n".join(printed(up.stdout))
        connection: dict[str, str] = json.loads((folder / "connection.json").read_bytes())
        up.terminate()
        assert up.wait(HANG_S) == 0
    assert str(folder / "connection.json") in text
    assert f"export CLOUDPAR_ENDPOINT={connection.pop('endpoint')}" in text
    assert not [name for name, token in connection.items() if token in text]


@pytest.mark.parametrize("is_journal", [False, True])
def test_json_has_tokens_through_a_socket_unless_it_is_the_journals(folder: Path, is_journal: bool) -> None:
    """Node.js gives its children sockets as standard streams; so does systemd, which announces it in a variable."""
    command = [*CLOUDPAR, "up", "--workers", "0", "--port", "0", "--data", str(folder), "--json"]
    ours, theirs = socket.socketpair()
    status = os.fstat(theirs.fileno())
    journal = {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}" if is_journal else "1:2"}
    with ours, theirs, subprocess.Popen(command, env=environment(**journal), stdout=theirs.fileno()) as up:
        announced = json.loads(ours.makefile().readline())
        up.terminate()
        assert up.wait(HANG_S) == 0
    assert ("admin_token" in announced) is not is_journal
    assert ("connection_file" in announced) is is_journal


def test_json_names_the_file_of_the_tokens_where_its_output_is_kept(folder: Path, tmp_path: Path) -> None:
    command = [*CLOUDPAR, "up", "--workers", "0", "--port", "0", "--data", str(folder), "--json"]
    log = tmp_path / "log"
    with log.open("w") as output, subprocess.Popen(command, env=environment(), stdout=output) as up:
        until(lambda: log.read_text().endswith("\n"))
        up.terminate()
        assert up.wait(HANG_S) == 0
    announced = json.loads(log.read_text())
    assert set(announced) == {"endpoint", "connection_file"}
    assert Path(announced["connection_file"]).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (["--set", "lease_s=nan"], 2, "write NAME=NUMBER"),
        (["--set", "lease_s=0"], 1, "--set lease_s=0: expected a number > 0"),
        (["--set", "foo=1"], 1, "--set foo=1: no setting has this name; there are chunk_target_us"),
        (["--workers", "1001"], 2, "not in the range 0<=x<=1000"),
        (["--readable", "/"], 2, "--isolation shared"), (["--isolation", "own", "--writable", "/"], 2, "all that you"),
        (["--network", "none"], 2, "--isolation shared"),
    ],
)  # fmt: skip
def test_invalid_options_are_refused(folder: Path, arguments: list[str], code: int, named: str) -> None:
    ended = cloudpar("up", "--port", "0", "--workers", "0", "--data", str(folder), *arguments)
    assert ended.returncode == code
    assert named in ended.stderr
    assert "$." not in ended.stderr
    assert not folder.exists()
