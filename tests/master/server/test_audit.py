"""Each action of an administrator leaves a line in a file."""

import errno
import json
import os
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.package_store import SqlitePackageStore
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount, GrantQuota, ListAccounts, RevokeAccount
from cloudpar_protocol.client_messages import CancelTasks, Hello, ListPackages

from .served import Served, error, start_tasks


def test_each_action_of_an_administrator_leaves_a_line(served: Served, tmp_path: Path) -> None:
    new = CreateAccount(idempotency_key="k", name="ann", token_hash="a" * 64, quota_us=5)
    account_id = served.call("admin", routes.CREATE_ACCOUNT, new).account.account_id
    served.call("admin", routes.GRANT_QUOTA, GrantQuota(idempotency_key="g", account_id=account_id, quota_us=7))
    served.call("admin", routes.LIST_ACCOUNTS, ListAccounts())
    served.call("admin", routes.LIST_PACKAGES, ListPackages())
    default = served.call("user", routes.HELLO, Hello()).account_id
    package_id = served.call("user", routes.START_TASKS, start_tasks()).package_id
    served.call("admin", routes.CANCEL_TASKS, CancelTasks(package_id=package_id))
    served.call("user", routes.CANCEL_TASKS, CancelTasks(package_id=package_id))
    served.call("admin", routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account_id))
    refused = served.run(served.exchange("admin", routes.REVOKE_ACCOUNT, RevokeAccount(account_id="unknown")))
    assert error(refused).code == "not_found"
    served.run(served.exchange("user", routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account_id)))

    path = tmp_path / "data" / "audit.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["action"], line["outcome"], line["account_id"]) for line in lines] == [
        ("create_account", "done", account_id),
        ("grant_quota", "done", account_id),
        ("cancel_tasks", "done", default),
        ("revoke_account", "done", account_id),
        ("revoke_account", "not_found", "unknown"),
    ]
    assert (lines[0]["name"], lines[0]["quota_us"], lines[2]["package_id"]) == ("ann", 5, package_id)
    assert {line["who"] for line in lines} == {"the admin token"}
    assert all(line["at"] > 0 for line in lines)
    assert path.stat().st_mode & 0o077 == 0
    assert "a" * 64 not in path.read_text()


def test_a_line_has_the_time_of_the_machines_clock_which_may_be_set(served: Served, tmp_path: Path) -> None:
    served.assembly.clock._machine = lambda: 1_000.0
    new = CreateAccount(idempotency_key="k", name="ann", token_hash="a" * 64, quota_us=5)
    made = served.call("admin", routes.CREATE_ACCOUNT, new).account
    (line,) = (tmp_path / "data" / "audit.jsonl").read_text().splitlines()
    assert (round(json.loads(line)["at"]), round(made.created_at)) == (1_000, 1_000)


def test_an_action_that_fails_half_way_leaves_a_line(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(SqlitePackageStore, "running_heads", fail)
    account_id = served.call("user", routes.HELLO, Hello()).account_id or ""
    refused = served.run(served.exchange("admin", routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account_id)))
    assert "the disk is broken" in error(refused).message
    (line,) = (tmp_path / "data" / "audit.jsonl").read_text().splitlines()
    assert json.loads(line)["outcome"] == "internal"


def test_the_cancel_of_a_package_that_cannot_be_read_leaves_a_line(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_id = served.call("user", routes.START_TASKS, start_tasks()).package_id

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(SqlitePackageStore, "spec", fail)
    served.call("admin", routes.CANCEL_TASKS, CancelTasks(package_id=package_id))
    (line,) = (tmp_path / "data" / "audit.jsonl").read_text().splitlines()
    assert (json.loads(line)["package_id"], json.loads(line)["account_id"]) == (package_id, None)


def test_an_audit_file_is_continued_after_a_restart(tmp_path: Path) -> None:
    for key, token_hash in (("one", "1" * 64), ("two", "2" * 64)):
        served = Served(tmp_path / "data")
        new = CreateAccount(idempotency_key=key, name=key, token_hash=token_hash, quota_us=1)
        served.run(served.exchange("admin", routes.CREATE_ACCOUNT, new))
        served.close()
    assert len((tmp_path / "data" / "audit.jsonl").read_text().splitlines()) == 2


def test_a_line_that_a_full_disk_cuts_off_is_removed_and_the_repeated_action_leaves_a_whole_one(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, write = tmp_path / "data" / "audit.jsonl", os.write
    room = 20

    def write_what_fits(descriptor: int, data: bytes) -> int:
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, data[:room])
        room -= written
        return written

    first, second = (
        CreateAccount(idempotency_key=name, name=name, token_hash=name * 64, quota_us=5) for name in ("a", "b")
    )
    served.call("admin", routes.CREATE_ACCOUNT, first)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_what_fits)
        refused = served.run(served.exchange("admin", routes.CREATE_ACCOUNT, second))
    assert (error(refused).code, room) == ("unavailable", 0)
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["a"]
    served.call("admin", routes.CREATE_ACCOUNT, second)
    assert [json.loads(line)["name"] for line in path.read_text().splitlines()] == ["a", "b"]
