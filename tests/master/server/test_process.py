"""The start, the files and the end of a master's process."""

import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.limits import HOLD_S
from support.master_process import Master, command, connection_of, run
from support.waiting import HANG_S

from .served import awaiting, retrieval, start_tasks


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_master_ends_at_a_signal_with_exit_code_0(tmp_path: Path, number: int) -> None:
    with Master(tmp_path) as master:
        assert master.call(connection_of(tmp_path)["token"], routes.HELLO, Hello()).role == "user"
        assert master.end(number) == (0, b"")


def test_a_master_ends_with_its_standard_input(tmp_path: Path) -> None:
    with Master(tmp_path, stdin=True) as master:
        assert master.call("admin", routes.HELLO, Hello()).role == "admin"
        assert master.process.stdin is not None
        master.process.stdin.close()
        master.process.stdin = None
        assert master.wait() == (0, b"")


PARENT = """
import subprocess, sys, os
reading, writing = os.pipe()  # another process keeps the writing end open, so the master must see the parent's death
master = subprocess.Popen(sys.argv[1:], stdin=reading)
os.write(writing, b"{}\\n")
os.set_inheritable(writing, True)
keeper = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=[writing])
print(master.pid, keeper.pid, flush=True)
os._exit(0) if sys.stdin.readline() else None
"""


def test_a_master_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, *command(tmp_path, "--port", "0", "--stdin")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    said = sorted([parent.stdout.readline(), parent.stdout.readline()])
    pids = next(line for line in said if not line.startswith("{")).split()
    master, keeper = (psutil.Process(int(pid)) for pid in pids)
    assert master.is_running()
    parent.kill()
    parent.wait(HANG_S)
    gone, _ = psutil.wait_procs([master], timeout=HANG_S)
    parent.stdin.close()
    parent.stdout.close()
    keeper.terminate()
    assert gone == [master]


def test_the_end_of_a_master_answers_held_requests(tmp_path: Path) -> None:
    with Master(tmp_path, stdin=True) as master:
        package_id = master.call("user", routes.START_TASKS, start_tasks()).package_id
        master.call("worker", routes.RETRIEVE_TASKS, retrieval())
        ways = [
            master.send("worker", routes.RETRIEVE_TASKS, retrieval("other", hold_s=HOLD_S)),
            master.send("user", routes.AWAIT_TASKS, awaiting(package_id, cursor=10**6, hold_s=HOLD_S)),
        ]
        master.call("user", routes.HELLO, Hello())  # the master serves it after the others, so these are held by now
        assert master.end() == (0, b"")
        for connection in ways:
            assert connection.getresponse().status == 200
            connection.close()


def test_a_port_in_use_is_named_with_the_fix(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run(tmp_path, "--port", str(port))
    assert ended.returncode == 1
    assert ended.stderr.count(b"\n") == 1
    assert f"port {port} is in use".encode() in ended.stderr
    assert b"--port" in ended.stderr


@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_an_invalid_port_is_refused(tmp_path: Path, port: str) -> None:
    ended = run(tmp_path, "--port", port)
    assert ended.returncode == 2
    assert b"Traceback" not in ended.stderr
    assert b"--port" in ended.stderr


def test_a_second_master_on_a_folder_ends_with_one_line(tmp_path: Path) -> None:
    with Master(tmp_path):
        ended = run(tmp_path, "--port", "0")
    assert ended.returncode == 1
    assert ended.stderr.startswith(b"cloudpar master: another master runs on the data folder")
    assert ended.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    ("name", "code", "named"),
    [("connection.json", 1, b"remove it, which makes new tokens"), ("master.sqlite", 1, b"not a database")],
)
def test_a_broken_file_is_named_with_the_fix(tmp_path: Path, name: str, code: int, named: bytes) -> None:
    (tmp_path / name).write_bytes(b"broken" * 1000)
    ended = run(tmp_path, "--port", "0")
    assert (ended.returncode, ended.stderr.count(b"\n")) == (code, 1)
    assert named in ended.stderr


def test_a_wrong_startup_config_is_refused(tmp_path: Path) -> None:
    ended = run(tmp_path, "--port", "0", "--stdin", stdin=b'{"settings": {"lease": 1}}\n')
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert b"lease" in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_master_listens_on_this_machine_only(tmp_path: Path) -> None:
    with Master(tmp_path) as master:
        connections = psutil.Process(master.process.pid).net_connections(kind="inet")
        assert {(each.laddr.ip, each.laddr.port) for each in connections if each.status == psutil.CONN_LISTEN} == {
            ("127.0.0.1", master.port)
        }


def test_a_master_takes_a_socket_that_listens_already(tmp_path: Path) -> None:
    """Clients may connect before the master has started."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        early = socket.create_connection(listening.getsockname(), timeout=HANG_S)
        descriptor = os.dup(listening.fileno())
        os.set_inheritable(descriptor, True)
        process = subprocess.Popen(
            command(tmp_path, "--listen-fd", str(descriptor)),
            pass_fds=[descriptor], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        os.close(descriptor)
        early.sendall(b"POST /v1/hello HTTP/1.1\r\nHost: m\r\nContent-Length: 0\r\n\r\n")
        assert early.recv(65536).startswith(b"HTTP/1.1 401")
        early.close()
    process.terminate()
    _, errors = process.communicate(timeout=HANG_S)
    assert (process.returncode, errors) == (0, b"")


def test_only_its_owner_may_read_the_files_of_a_data_folder(tmp_path: Path) -> None:
    """This also holds in a folder that others may read, and with an umask that allows everything."""
    tmp_path.chmod(0o755)
    before = os.umask(0)
    try:
        master = Master(tmp_path)
    finally:
        os.umask(before)
    with master:
        token = connection_of(tmp_path)["token"]
        master.call(token, routes.START_TASKS, start_tasks())
        for path in tmp_path.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
