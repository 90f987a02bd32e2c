"""The account function, by which an operator administers a deployment."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.client import BaseClient

from cloudpar_master.ports import Fit, WorkerRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol.payloads import Unfit
from support.stores import Stores

from . import states
from .conftest import USER_TOKEN, Context, Start

Log = Callable[[], list[dict[str, Any]]]
NEW = {"idempotency_key": "k", "name": "ann", "token_hash": hash_token(USER_TOKEN), "quota_us": 1000}


def test_an_operator_administers_accounts(start: Start, stack: Stores, log: Log) -> None:
    function = start("account")

    def ask(route: str, **message: Any) -> Any:
        answer = function.handle({"route": route, "body": message}, Context())
        assert answer["status"] == 200, answer
        return answer["body"]

    created = ask("create_account", **NEW)["account"]
    assert created["granted_us"] == 1000
    assert ask("list_accounts")["accounts"] == [created]
    granted = ask("grant_quota", account_id=created["account_id"], idempotency_key="g", quota_us=500)
    assert granted["account"]["granted_us"] == 1500
    assert ask("list_packages")["packages"] == []
    assert ask("revoke_account", account_id=created["account_id"])["account"]["state"] == "revoked"
    found = stack.accounts.by_token(hash_token(USER_TOKEN))
    assert found is not None
    assert found.state == "revoked"
    assert [line["route"] for line in log()] == [
        "create_account", "list_accounts", "grant_quota", "list_packages", "revoke_account",
    ]  # fmt: skip


def test_workers_with_what_they_lack_are_listed_by_two_calls(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    states.create_accounts(stack)
    lacks = Unfit("host-a", "no module named 'numpy'")
    for package_id in ("p1", "p2"):
        states.create_package(stack, package_id, set_aside=[lacks])
    fit = Fit(("3.11",), ("p1", "p2", "forgotten"))
    now = time.time()
    stack.registry.note(WorkerRecord("w", now, "host-a", 4, fit))
    stack.registry.note(WorkerRecord("gone", now - 1_000, "host-b", 4))
    function = start("account")
    calls: list[str] = []
    make: Any = BaseClient._make_api_call  # type: ignore[attr-defined]

    def note(client: object, name: str, options: object) -> Any:
        calls.append(name)
        return make(client, name, options)

    monkeypatch.setattr(BaseClient, "_make_api_call", note)
    answer = function.handle({"route": "list_workers", "body": {}}, Context())
    assert calls == ["Query", "BatchGetItem"]
    (worker,) = answer["body"]["workers"]
    assert (worker["worker_id"], worker["host"], worker["executors"], worker["pythons"]) == ("w", "host-a", 4, ["3.11"])
    assert [(each["package_id"], each["lacks"]) for each in worker["set_aside"]] == [
        ("p1", lacks.lacks), ("p2", lacks.lacks), ("forgotten", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("event", "status", "code"),
    [
        ({}, 404, "not_found"),
        ({"route": "nonsense", "body": {}}, 404, "not_found"),
        ({"route": "create_account", "body": {}}, 400, "bad_request"),
        ({"route": "create_account", "body": None}, 400, "bad_request"),
        (
            {"route": "grant_quota", "body": {"account_id": "x", "idempotency_key": "k", "quota_us": 1}},
            404,
            "not_found",
        ),
        ({"route": "\ud800", "body": {}}, 400, "bad_request"),
        ({"route": "list_accounts", "who": "\ud800", "body": {}}, 400, "bad_request"),
        ({"route": "grant_quota", "body": {"account_id": "\ud800"}}, 400, "bad_request"),
        ({"route": "grant_quota", "body": {"quota_us": 2**64}}, 400, "bad_request"),
        ({"route": "start_tasks", "body": {}}, 403, "forbidden"),
        ({"route": "retrieve_tasks", "body": {}}, 403, "forbidden"),
        ({"route": "cancel_tasks", "body": {"package_id": "x"}}, 404, "not_found"),
    ],
)
def test_invalid_events_are_refused_with_a_code(start: Start, event: dict[str, Any], status: int, code: str) -> None:
    answer = start("account").handle(event, Context())
    assert (answer["status"], answer["body"]["code"]) == (status, code)


def test_an_unexpected_error_is_answered_and_logged(start: Start, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    function = start("account")

    def fail(_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(function._dispatcher, "perform", fail)
    answer = function.handle({"route": "list_accounts", "body": {}}, Context())
    assert (answer["status"], answer["body"]["retryable"]) == (500, True)
    assert log()[0]["level"] == "ERROR"
