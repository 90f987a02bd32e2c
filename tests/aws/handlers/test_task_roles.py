"""The worker function gives credentials of accounts' IAM roles to workers, and to no log."""

import json
from typing import Any

import pytest

from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.core.head import OpenRange
from cloudpar_master.ports import AccountRecord, Sending
from cloudpar_master.services.chunk_text import ChunkText
from cloudpar_protocol import routes
from cloudpar_protocol.worker_messages import ExtendLeases, Lease, LeaseRef, RetrieveTasks
from support.stores import Stores

from . import states
from .calls import ask
from .conftest import WORKER_TOKEN, Start

ROLE = "arn:aws:iam::123456789012:role/cloudpar/ann"


@pytest.fixture
def waiting(stack: Stores) -> None:
    """Give an account a role, and let a chunk of this account wait."""
    stack.accounts.create(AccountRecord("with-role", "bob", "hash", "active", 10**12, 0, 0, 0.0))
    assert isinstance(stack.accounts, DynamoAccountStore)
    stack.accounts.keep_task_role("with-role", ROLE)
    open_: dict[str, Any] = {"open": [OpenRange(0, 4, 1, sent=True)], "cursor": 4, "reserved_us": 10**9}
    states.create_package(stack, "main", account="with-role", **open_)
    stack.queue.send([Sending(main := ChunkText("main", 0, 4, 1).text, main)])


def leased(function: Any) -> Lease:
    request = RetrieveTasks(attempt_id="x", worker_id="w", executors=1, chunks=1, credentials=True)
    (lease,) = ask(function, routes.RETRIEVE_TASKS, request, WORKER_TOKEN).leases
    return lease


@pytest.mark.usefixtures("waiting")
def test_the_logs_contain_no_credentials(start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    function = start("worker")
    lease = leased(function)
    assert lease.credentials is not None
    assert lease.credentials.package_id == "main"
    beat = ExtendLeases(worker_id="w", leases=[LeaseRef(**lease.identity())], credentials=True)
    reply = ask(function, routes.EXTEND_LEASES, beat, WORKER_TOKEN)
    assert reply.credentials == [lease.credentials]
    out, err = capsys.readouterr()
    routes_logged = [json.loads(line)["route"] for line in out.splitlines() if '"route"' in line]
    assert routes_logged[-2:] == ["retrieve_tasks", "extend_leases"]
    for secret in (
        lease.credentials.access_key_id, lease.credentials.secret_access_key, lease.credentials.session_token,
    ):  # fmt: skip
        assert secret not in out + err


@pytest.mark.usefixtures("waiting")
def test_one_session_serves_all_leases_of_a_package(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = start("worker")
    first = leased(function)
    stack.queue.send([Sending(again := ChunkText("main", 0, 4, 1, losses=1).text, again)])
    assert leased(function).credentials == first.credentials
