"""`cloudpar doctor` prints a line for each thing that may be wrong."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar.cli.application import run
from cloudpar.cli.clock_check import check_clock
from cloudpar.cli.payload_check import check_payloads
from support.command import cloudpar
from support.forwarders import half_way
from support.http_server import Answer, HttpServer
from support.up import Up, worker

MECHANISMS = {
    "a user for each executor", "Landlock for files", "Landlock for signals", "seccomp",
    "shared memory for each executor", "an IPC namespace for each executor",
}  # fmt: skip
STEP_S = 4.0
"""How long a step of a payload's way may take. Each test has a step that fails, and so takes as long."""

Examine = Callable[..., tuple[int, dict[str, Any]]]
METADATA = "instance metadata out of reach"


def examine(*arguments: str, **more: str) -> tuple[int, dict[str, Any]]:
    ended = cloudpar("doctor", *arguments, "--json", **more)
    return ended.returncode, {each["what"]: each for each in json.loads(ended.stdout)["findings"]}


@pytest.fixture
def examine_here(impatient: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Examine:
    """Examine in this process, which gives up soon on a master that never answers."""

    def examine_here(*arguments: str, **more: str) -> tuple[int, dict[str, Any]]:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("CLOUDPAR_")]:
                patch.delenv(name)
            for name, value in more.items():
                patch.setenv(name, value)
            code = run(["doctor", *arguments, "--json"])
        return code, {each["what"]: each for each in json.loads(capsys.readouterr().out)["findings"]}

    return examine_here


def test_a_healthy_cluster_is_ok(cluster: Up) -> None:
    code, found = examine("--endpoint", cluster.endpoint, "--token", cluster.connection["token"])
    assert code == 0
    assert {name: found[name]["verdict"] for name in ("Python", "master", "token", "clock")} == dict.fromkeys(
        ("Python", "master", "token", "clock"), "ok"
    )
    assert set(found) >= MECHANISMS
    for name in MECHANISMS:
        assert (found[name]["verdict"] == "ok") == (found[name]["detail"] == "confines tasks of a shared pool")


def legs(up: Up, endpoint: str, step_s: float = STEP_S) -> dict[str, str]:
    """Return the verdict on each part of a payload's way, for a client that uses this address."""
    token = up.connection["token"]
    connection = Connection(endpoint, token, RetryPolicy(1.0))
    try:
        return {each.what: each.verdict for each in check_payloads(connection, token, step_s)}
    finally:
        connection.close()


WELL = {"payload from here": "ok", "worker": "ok", "payload to a worker": "ok", "payload from a worker": "ok"}


def test_a_payload_goes_to_a_worker_and_back(cluster: Up) -> None:
    assert legs(cluster, cluster.endpoint) == WELL
    with half_way(cluster.endpoint, "PUT") as endpoint:
        assert legs(cluster, endpoint) == {"payload from here": "bad"}
    with half_way(cluster.endpoint, "GET") as endpoint:
        assert legs(cluster, endpoint) == WELL | {"payload from a worker": "bad"}


def test_without_a_worker_only_the_way_from_here_is_tried(tmp_path: Path) -> None:
    with Up(tmp_path / "data", workers=0) as up:
        assert legs(up, up.endpoint, 1.0) == {"payload from here": "ok", "worker": "missing"}


@pytest.mark.parametrize(("method", "leg"), [("GET", "payload to a worker"), ("PUT", "payload from a worker")])
def test_the_part_of_the_way_that_fails_at_a_worker_is_named(tmp_path: Path, method: str, leg: str) -> None:
    with (
        Up(tmp_path / "data", workers=0) as up,
        half_way(up.endpoint, method) as endpoint,
        worker(up, endpoint=endpoint) as agent,
    ):
        assert legs(up, up.endpoint) == WELL | {leg: "bad"}
        agent.kill()  # it would retry for a minute to publish its results


def test_the_admin_token_alone_moves_no_payload(cluster: Up) -> None:
    code, found = examine("--endpoint", cluster.endpoint, "--token", cluster.connection["admin_token"])
    assert (code, found["payload"]["verdict"]) == (0, "missing")


def test_a_wrong_token_and_a_wrong_address_are_bad(cluster: Up, examine_here: Examine) -> None:
    code, found = examine_here("--endpoint", cluster.endpoint, "--token", "unknown")
    assert (code, found["master"]["verdict"], "token" in found) == (1, "bad", False)
    code, found = examine_here("--endpoint", "http://127.0.0.1:1", "--token", "unknown")
    assert (code, found["master"]["verdict"]) == (1, "bad")


def test_doctor_without_a_master_finds_no_fault(tmp_path: Path) -> None:
    code, found = examine(XDG_DATA_HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))
    assert (code, found["master"]["verdict"]) == (0, "missing")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--data", "/nowhere"], "/nowhere/connection.json"), (["--endpoint", "http://127.0.0.1:1"], "no token"),
        (["--endpoint", "127.0.0.1:1", "--token", "t"], "is not a URL"),
    ],
)  # fmt: skip
def test_a_malformed_endpoint_is_bad(tmp_path: Path, arguments: list[str], named: str, examine_here: Examine) -> None:
    code, found = examine_here(*arguments, XDG_DATA_HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))
    assert (code, found["master"]["verdict"]) == (1, "bad")
    assert named in found["master"]["detail"]


def test_mechanisms_that_workers_do_not_use_are_no_fault_and_their_lines_say_so(cluster: Up) -> None:
    _, found = examine("--endpoint", cluster.endpoint, "--token", cluster.connection["token"])
    for name in ("a PID namespace for each executor", "control groups (cgroup v2)", "gVisor"):
        assert found[name]["verdict"] in {"note", "missing"}
        assert "use" in found[name]["detail"]


def test_on_a_terminal_of_80_columns_long_lines_continue_below_their_text(tmp_path: Path) -> None:
    ended = cloudpar("doctor", XDG_DATA_HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path), COLUMNS="80")
    lines = ended.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert {line.split()[0] for line in lines if not line.startswith(" ")} <= {"ok", "note", "missing", "bad"}
    assert any(line.startswith(" " * 9) for line in lines)
    assert not any(line.startswith(" ") and not line.startswith(" " * 9) for line in lines)


def test_doctor_prints_a_line_for_each_finding(cluster: Up) -> None:
    ended = cloudpar("doctor", "--data", str(cluster.folder), COLUMNS="200")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "master: release" in ended.stdout
    assert ended.stdout.count("\n") == len(MECHANISMS) + 16


def test_a_metadata_service_that_answers_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        _, found = examine(AWS_EC2_METADATA_SERVICE_ENDPOINT=f"http://127.0.0.1:{port}")
    finding = found[METADATA]
    assert finding["verdict"] == "note"
    assert f"{port} (as for http://)" in finding["detail"]
    assert "127.0.0.1): to allow it, block these addresses" in finding["detail"]


def late_master(status: int, date: str) -> HttpServer:
    return HttpServer(lambda _: Answer(status, headers={"Date": date}))


def test_a_clock_that_is_off_is_bad() -> None:
    with late_master(404, "Thu, 01 Jan 2026 00:00:00 GMT") as master:
        (clock,) = check_clock(master.endpoint)
    assert (clock.what, clock.verdict) == ("clock", "bad")
    assert list(check_clock(master.endpoint)) == []


@pytest.mark.parametrize("date", ["soon", "Thu, 99 Foo 2026", "Thu, 01 Jan 2026 25:61:00 GMT", ""])
def test_an_invalid_date_is_reported(date: str) -> None:
    with late_master(200, date) as master:
        (clock,) = check_clock(master.endpoint)
    assert clock.verdict == "missing"
    assert "no time that can be read" in clock.detail


def test_a_server_without_http_gives_no_time() -> None:
    with HttpServer(lambda request: request.connection.sendall(b"220 mail ready\r\n")) as server:
        assert list(check_clock(server.endpoint)) == []
