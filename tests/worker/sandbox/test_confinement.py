"""The worker says which mechanisms a machine lacks, and what that means."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest

from cloudpar_worker import __main__ as worker
from cloudpar_worker.sandbox import confinement, landlock, syscall_filter, uid_pool
from cloudpar_worker.sandbox.confinement import (
    OWN_USERS,
    closed_ports,
    costs,
    extras,
    gaps,
    mechanisms,
    refusal,
    sentence,
)
from cloudpar_worker.sandbox.instance_metadata import Service
from cloudpar_worker.shell.settings import WorkerSettings

HINDRANCE = "let every user read /somewhere"


@pytest.mark.parametrize(("user", "means", "fix"), [(0, "passwords", "ordinary user"), (1000, "modes", "as root")])
def test_the_warning_about_one_user_says_more_for_root(
    monkeypatch: pytest.MonkeyPatch, user: int, means: str, fix: str
) -> None:
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: HINDRANCE)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    gap = next(each.gap for each in mechanisms(tempfile.gettempdir(), [], []) if each.name == OWN_USERS)
    assert means in gap
    assert fix in gap


@pytest.mark.parametrize(("user", "own_uids", "refused"), [(0, False, True), (0, True, False), (1000, False, False)])
def test_a_worker_as_root_without_user_ids_for_executors_is_refused(
    monkeypatch: pytest.MonkeyPatch, user: int, own_uids: bool, refused: bool
) -> None:
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: "" if own_uids else HINDRANCE)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert (refusal(mechanisms(tempfile.gettempdir(), [], [])) is not None) is refused


def start(monkeypatch: pytest.MonkeyPatch, *, user: int, obstacle: str, readable: Sequence[str] = ()) -> int:
    """Start a shared worker up to its zygotes; return its exit code, or -1 if it reaches them."""

    def reach(*_: object) -> NoReturn:
        raise SystemExit(-1)

    settings = WorkerSettings(
        endpoint="http://127.0.0.1:1", token="t", executors=1, isolation="shared", readable=list(readable)
    )
    monkeypatch.setattr("sys.argv", ["cloudpar_worker", "--stdin"])
    monkeypatch.setattr(worker, "parse", lambda _: settings)
    monkeypatch.setattr(worker, "hide_memory", lambda: None)
    monkeypatch.setattr(worker, "answering", lambda _: [])
    monkeypatch.setattr(worker, "open_sockets", list)
    monkeypatch.setattr(worker, "Zygotes", reach)
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: obstacle)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    try:
        return worker.main()
    except SystemExit:
        return -1


def test_the_agent_hides_its_memory_before_it_reads_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise another process of this user, such as one that a task left behind, could read the token meanwhile."""
    done: list[str] = []

    def read(_: bytes) -> NoReturn:
        done.append("read")
        raise ValueError

    monkeypatch.setattr("sys.argv", ["cloudpar_worker", "--stdin"])
    monkeypatch.setattr(worker, "hide_memory", lambda: done.append("hidden"))
    monkeypatch.setattr(worker, "parse", read)
    assert worker.main() == 2
    assert done == ["hidden", "read"]


def test_a_refused_worker_does_not_start(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert start(monkeypatch, user=0, obstacle=HINDRANCE) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(
        "cloudpar worker: cannot give each executor a user of its own, so it does not start as root"
    )
    positions = [printed.index(fix) for fix in ("add --isolation own", HINDRANCE, "ordinary user")]
    assert positions == sorted(positions), "the shortest fix comes first"


@pytest.mark.parametrize("own_uids", [True, False])
def test_paths_that_executors_cannot_read_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, own_uids: bool
) -> None:
    named = str(tmp_path / "data")
    user, obstacle = (0, "") if own_uids else (1000, HINDRANCE)
    assert start(monkeypatch, user=user, obstacle=obstacle, readable=["/usr", named]) == -1
    assert (f"warning: tasks cannot read {named}: let other users read" in capsys.readouterr().err) is own_uids


ANSWERING = [Service("192.0.2.1"), Service("192.0.2.2", 81)]


@pytest.mark.parametrize(
    ("version", "filtered"), [(landlock.NETWORKED, True), (landlock.NETWORKED, False), (landlock.NETWORKED - 1, True)]
)
def test_a_metadata_service_that_answers_closes_its_port_or_is_a_gap(
    monkeypatch: pytest.MonkeyPatch, version: int, filtered: bool
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: version)
    monkeypatch.setattr(syscall_filter, "available", lambda: filtered)
    closed = filtered and version >= landlock.NETWORKED
    assert closed_ports(ANSWERING) == ([80, 81] if closed else [])
    found = mechanisms(tempfile.gettempdir(), ANSWERING, [])
    assert ("port 80 and 81 (as for http://)" in " ".join(costs(found))) == closed
    assert ("from 192.0.2.1, 192.0.2.2" in sentence(gaps(found))) != closed


def test_without_metadata_services_all_ports_are_open() -> None:
    found = mechanisms(tempfile.gettempdir(), [], [])
    assert costs(found) == []
    assert [each.does for each in found if "metadata" in each.name and each.there] == ["none answers here"]


@pytest.mark.parametrize(
    ("version", "own_users", "filtered", "open_to_tasks"),
    [
        (landlock.RESOLVING - 1, True, True, True),
        (landlock.RESOLVING, True, True, False),
        (landlock.RESOLVING - 1, False, True, False),
        (landlock.RESOLVING - 1, False, False, True),
    ],
)
def test_sockets_that_tasks_can_reach_are_a_gap(
    monkeypatch: pytest.MonkeyPatch, version: int, own_users: bool, filtered: bool, open_to_tasks: bool
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: version)
    monkeypatch.setattr(syscall_filter, "available", lambda: filtered)
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: "" if own_users else HINDRANCE)
    bus, others = "/run/dbus/system_bus_socket", [f"/run/{number}" for number in range(6)]
    said = sentence(gaps(mechanisms(tempfile.gettempdir(), [], [bus, *others])))
    assert (f"tasks can connect to {bus}, /run/0, /run/1, /run/2, /run/3 and 2 more, as every" in said) is open_to_tasks
    assert "tasks can connect" not in sentence(gaps(mechanisms(tempfile.gettempdir(), [], [])))


class NoNamespaces:
    """A machine on which executors can have no namespaces."""

    has_ipc = has_network = False

    def __init__(self, *, network: bool) -> None:
        pass


@pytest.mark.parametrize("network", ["outbound", "none"])
def test_a_worker_that_cannot_keep_tasks_from_the_network_refuses_only_network_none(
    monkeypatch: pytest.MonkeyPatch, network: str
) -> None:
    monkeypatch.setattr(confinement, "Namespaces", NoNamespaces)
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: "")
    found = mechanisms(tempfile.gettempdir(), [], [])
    refused = refusal(found, network)
    assert refused is None if network == "outbound" else "cannot keep tasks from the network" in (refused or "")
    assert "namespace" not in sentence(gaps(found))
    assert "an IPC namespace for each executor, a network namespace for each executor" in extras(found)
