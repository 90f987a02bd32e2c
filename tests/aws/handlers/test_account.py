"""The operator's function."""

from collections.abc import Callable
from typing import Any

import pytest

from cloudpar_master.services.deployment import hash_token
from master.stores import Stores

from .conftest import USER_TOKEN, Context, Start

Log = Callable[[], list[dict[str, Any]]]
NEW = {"idempotency_key": "k", "name": "ann", "token_hash": hash_token(USER_TOKEN), "quota_us": 1000}


def test_accounts(start: Start, stack: Stores, log: Log) -> None:
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
def test_refusals(start: Start, event: dict[str, Any], status: int, code: str) -> None:
    answer = start("account").handle(event, Context())
    assert (answer["status"], answer["body"]["code"]) == (status, code)


def test_what_fails_is_told_and_logged(start: Start, log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    function = start("account")

    def fail(_: Any) -> None:
        raise RuntimeError("secret")

    monkeypatch.setattr(function._reception, "perform", fail)
    answer = function.handle({"route": "list_accounts", "body": {}}, Context())
    assert (answer["status"], answer["body"]["retryable"]) == (500, True)
    assert log()[0]["level"] == "ERROR"
