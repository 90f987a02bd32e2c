"""Damaged bodies at the functions on AWS's stores, which have their own rules for names and receipts."""

import base64
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import codec, routes
from cloudpar_protocol.codec import ErrorReply
from cloudpar_protocol.routes import ROUTES, Route
from hostile.mutations import goldens, knocks
from hostile.target import Knock
from master.server.served import awaiting, publication, retrieval, start_tasks
from support.scale import Scale
from support.stores import Stores

from .calls import ask, body_of, event
from .conftest import USER_TOKEN, WORKER_TOKEN, Context, Start


@pytest.fixture(autouse=True)
def account(stack: Stores) -> None:
    """An account whose name is in no vector: a vector with its name would revoke it."""
    stack.accounts.create(AccountRecord("of this test", "ann", hash_token(USER_TOKEN), "active", 10**12, 0, 0, 0.0))


class Functions:
    """The functions, with a running package and leases of it."""

    def __init__(self, start: Start) -> None:
        self._client, self._worker, self._account = start("client"), start("worker"), start("account")
        package_id = ask(self._client, routes.START_TASKS, start_tasks(tasks=40)).package_id
        leases = ask(self._worker, routes.RETRIEVE_TASKS, retrieval(chunks=6), WORKER_TOKEN).leases
        lives: list[tuple[Route[Any, Any], Any]] = [
            (routes.START_TASKS, start_tasks(tasks=40)),
            (routes.AWAIT_TASKS, awaiting(package_id)),
        ]
        lives += [(routes.PUBLISH_RESULTS, publication(lease)) for lease in leases]
        self.seeds = [Knock(route, codec.MSGPACK, codec.encode(message)).pack() for route, message in lives]

    def knock(self, knock: Knock) -> int:
        """Send a request and return the status; an error must say what is wrong."""
        if knock.route.role == "admin":
            return self._operate(knock)
        function, token = (self._worker, WORKER_TOKEN) if knock.route.role == "worker" else (self._client, USER_TOKEN)
        sent = event(knock.route.path, b"", token) | {"body": base64.b64encode(knock.body).decode()}
        sent["headers"]["content-type"] = knock.media
        answer = function.handle(sent, Context())
        status: int = answer["statusCode"]
        kind = knock.route.reply if status == 200 else ErrorReply
        codec.decode(body_of(answer), kind, answer["headers"]["content-type"])
        return status

    def _operate(self, knock: Knock) -> int:
        """Send it as an operator: Lambda accepts nothing but JSON there."""
        try:
            body = json.loads(msgspec.json.encode(codec.decode(knock.body, dict, knock.media)))
        except Exception:  # noqa: BLE001 - it cannot be sent at all
            return 400
        return int(self._account.handle({"route": knock.route.name, "body": body}, Context())["status"])


@pytest.fixture
def functions(start: Start, stack: Stores) -> Functions:
    return Functions(start)


def test_g21_damaged_events_are_refused_with_4xx(
    functions: Functions, scale: Scale, reached: Callable[[str], None], log: Callable[[], Any]
) -> None:
    statuses: Counter[int] = Counter()

    @settings(max_examples=scale(150, 3_000), suppress_health_check=list(HealthCheck), database=None)
    @given(data=st.data())
    def damaged(data: st.DataObject) -> None:
        knock = data.draw(knocks(data.draw(st.sampled_from(ROUTES)), functions.seeds))
        status = functions.knock(knock)
        assert status == 200 or 400 <= status < 500, (knock, log())
        statuses[status] += 1

    damaged()
    refused = statuses.total() - statuses[200]
    assert refused > statuses.total() / 4
    reached(f"functions on AWS's stores: {statuses.total():,} damaged events, {refused:,} refused with 4xx, no 5xx")


def test_a_message_that_json_cannot_hold_cannot_be_sent(functions: Functions) -> None:
    """MessagePack has an extension whose data would contain the next field's name."""
    grant = {"v": 1, "idempotency_key": "k", "account_id": msgspec.msgpack.Ext(1, b"\xa8quota_u"), 115: 255}
    assert functions.knock(Knock(routes.GRANT_QUOTA, codec.MSGPACK, msgspec.msgpack.encode(grant))) == 400


def test_the_vectors_of_every_route(functions: Functions, log: Callable[[], Any]) -> None:
    for route in ROUTES:
        for golden in goldens(route):
            status = functions.knock(Knock(route, codec.MSGPACK, codec.encode(golden)))
            assert status == 200 or 400 <= status < 500, (golden, log())
