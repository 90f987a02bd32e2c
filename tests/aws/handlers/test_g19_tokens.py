"""Neither what AWS stores nor what the functions log contains a token or an account's key in plain text."""

import os
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aws import engines
from aws.stores import clients
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Hello, StartTasks
from cloudpar_protocol.errors import Forbidden, InvalidToken, NotFound
from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import InlineData, TaskCode
from cloudpar_protocol.worker_messages import RetrieveTasks

from .calls import ask, body_of, event
from .conftest import WORKER_TOKEN, Context, Start

OPERATOR = "arn:aws:sts::123456789012:assumed-role/operator/ann"
Log = Callable[[], list[dict[str, Any]]]


def stored() -> Iterator[tuple[str, bytes]]:
    """Return everything in the tables, the queue and the bucket, by its place."""
    at = clients(engines.moto())
    for table in (os.environ["CLOUDPAR_PACKAGE_TABLE"], os.environ["CLOUDPAR_ACCOUNT_TABLE"]):
        for page in at.dynamodb.get_paginator("scan").paginate(TableName=table):
            for row in page["Items"]:
                yield f"{table} {row['pk']} {row['sk']}", repr(row).encode()
    received = at.sqs.receive_message(QueueUrl=os.environ["CLOUDPAR_QUEUE_URL"], MaxNumberOfMessages=10)
    for message in received.get("Messages", []):
        yield message["MessageId"], message["Body"].encode()
    bucket = os.environ["CLOUDPAR_BUCKET"]
    for listed in at.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for entry in listed.get("Contents", []):
            yield entry["Key"], at.s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()


@pytest.mark.usefixtures("stack")
def test_g19_no_token_lies_in_tables_queue_bucket_or_log(
    start: Start, capsys: pytest.CaptureFixture[str], reached: Callable[[str], None]
) -> None:
    account, client, worker = start("account"), start("client"), start("worker")
    tokens = [secrets.token_urlsafe(32), WORKER_TOKEN]
    made = account.handle(
        {
            "route": "create_account",
            "body": {"idempotency_key": "k", "name": "ann", "token_hash": hash_token(tokens[0]), "quota_us": 10**9},
        },
        Context(),
    )
    assert made["status"] == 200
    key = ask(client, routes.HELLO, Hello(), tokens[0]).seal_key
    assert key is not None
    code, data = TaskCode("0" * 64, b"code"), InlineData([b"data"] * 300)
    for name in ("runs", "waits"):
        order = StartTasks(idempotency_key=name, n=300, python="3.11", code=code, data=data)
        ask(client, routes.START_TASKS, order, tokens[0])
    asked = RetrieveTasks(attempt_id="t", worker_id="w", executors=1, chunks=1)
    assert ask(worker, routes.RETRIEVE_TASKS, asked, WORKER_TOKEN).leases
    with pytest.raises(Forbidden):
        ask(worker, routes.RETRIEVE_TASKS, asked, tokens[0])
    # A body that cannot be read is mentioned in the answer, and may be logged.
    for wrong in (b"\xc1", b"x" * (INLINE_RESULT_BYTES)):
        refused = client.handle(event(routes.START_TASKS.path, wrong, tokens[0]), Context())
        assert codec.decode_error(body_of(refused), refused["statusCode"]).code == "bad_request"
    assert account.handle({"route": "revoke_account", "body": {"account_id": "unknown"}}, Context())["status"] == 404

    kept, logged = dict(stored()), capsys.readouterr()
    plain = [*(token.encode() for token in tokens), key, repr(key).encode()[2:-1], b64encode(key)]
    assert len(kept) > 5
    assert logged.out.count("\n") > 5
    for secret in plain:
        assert not [place for place, content in kept.items() if secret in content]
        assert secret not in (logged.out + logged.err).encode()
    assert any(hash_token(tokens[0]).encode() in content for content in kept.values())
    reached(f"on AWS: 0 plaintexts in {len(kept)} rows, messages and objects, and in the functions' log")


@pytest.mark.usefixtures("stack")
def test_g19_what_an_administrator_did_is_logged(start: Start, log: Log) -> None:
    account = start("account")
    token = secrets.token_urlsafe(32)

    def ask_as_operator(route: str, **body: Any) -> Any:
        return account.handle({"route": route, "body": body, "who": OPERATOR}, Context())["body"]

    made = ask_as_operator(
        "create_account", idempotency_key="k", name="ann", token_hash=hash_token(token), quota_us=1_000
    )
    account_id = made["account"]["account_id"]
    ask_as_operator("list_accounts")
    ask_as_operator("grant_quota", account_id="unknown", idempotency_key="g", quota_us=5)
    ask_as_operator("revoke_account", account_id=account_id)
    lines = [line["audit"] for line in log() if line.get("audit")]
    assert lines == [
        {"who": OPERATOR, "action": "create_account", "outcome": "done", "account_id": account_id, "name": "ann",
         "quota_us": 1_000, "idempotency_key": "k"},
        {"who": OPERATOR, "action": "grant_quota", "outcome": "not_found", "account_id": "unknown", "quota_us": 5,
         "idempotency_key": "g"},
        {"who": OPERATOR, "action": "revoke_account", "outcome": "done", "account_id": account_id},
    ]  # fmt: skip


@pytest.mark.usefixtures("stack")
def test_g19_every_route_of_the_api_refuses_strangers(start: Start) -> None:
    functions = start("client"), start("worker")
    for token in ("", "unknown", hash_token(WORKER_TOKEN)):
        refusing = set()
        for route in routes.ROUTES:
            answers = [function.handle(event(route.path, b"\xc1", token), Context()) for function in functions]
            statuses = {answer["statusCode"] for answer in answers}
            assert statuses <= {InvalidToken.status, NotFound.status}
            refusing |= {route.role} if InvalidToken.status in statuses else set()
        assert refusing == {"any", "user", "worker"}  # an operator's routes are on no API
