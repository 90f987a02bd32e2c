"""What the adapters do when DynamoDB leaves part of a request undone, and how often they retry it."""

from collections.abc import Iterator
from typing import Any

import pytest

from cloudpar_master.adapters.aws import backoff
from cloudpar_master.adapters.aws.table import CONDITION_FAILED, MISSING, Refused, Table, put
from cloudpar_protocol.errors import Unavailable

from .stubs import ANY, Stubber, offline, stubbed

Scripted = tuple[Table, Stubber]

KEY: dict[str, Any] = {"pk": {"S": "p"}, "sk": {"S": "s"}}
ROW = {"pk": "p", "sk": "s"}
OTHER = {**ROW, "sk": "t"}


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    client = offline().dynamodb
    with stubbed(client) as stub:
        yield Table(client, "table"), stub


def cancelled(stub: Stubber, *codes: str, **item: Any) -> None:
    reasons = [{"Code": code, **(item if code == CONDITION_FAILED else {})} for code in codes]
    stub.add_client_error(
        "transact_write_items", "TransactionCanceledException", "cancelled",
        modeled_fields={"CancellationReasons": reasons},
    )  # fmt: skip


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_cancelled_transaction_is_tried_again(scripted: Scripted, no_waiting: list[float], reason: str) -> None:
    rows, stub = scripted
    cancelled(stub, "None", reason)
    cancelled(stub, reason, "None")
    stub.add_response("transact_write_items", {})
    assert rows.transact([put(ROW, MISSING), put(OTHER, MISSING)]) is None
    assert len(no_waiting) == 2


def test_a_transaction_that_is_always_cancelled_is_retryable(scripted: Scripted, no_waiting: list[float]) -> None:
    rows, stub = scripted
    for _ in range(backoff.ATTEMPTS):
        cancelled(stub, "TransactionConflict")
    with pytest.raises(Unavailable, match="busy") as raised:
        rows.transact([put(ROW, MISSING)])
    assert raised.value.retry_after_s
    assert len(no_waiting) == backoff.ATTEMPTS - 1
    assert all(0 <= wait_s <= backoff.LONGEST_S for wait_s in no_waiting)


def test_a_failed_condition_ends_a_transaction_despite_other_conflicts(scripted: Scripted) -> None:
    rows, stub = scripted
    cancelled(stub, "TransactionConflict", CONDITION_FAILED, Item=KEY)
    assert rows.transact([put(OTHER, MISSING), put(ROW, MISSING)]) == [None, Refused(ROW)]


def test_an_invalid_transaction_is_not_retried(scripted: Scripted) -> None:
    rows, stub = scripted
    cancelled(stub, "ValidationError")
    with pytest.raises(rows._client.exceptions.TransactionCanceledException):
        rows.transact([put(ROW, MISSING)])


def test_a_write_into_a_transaction_is_tried_again(scripted: Scripted, no_waiting: list[float]) -> None:
    rows, stub = scripted
    stub.add_client_error("put_item", "TransactionConflictException")
    stub.add_response("put_item", {})
    assert rows.write(put(ROW, MISSING)) is None
    assert len(no_waiting) == 1


def test_a_write_that_always_conflicts_is_retryable(scripted: Scripted, no_waiting: list[float]) -> None:
    rows, stub = scripted
    for _ in range(backoff.ATTEMPTS):
        stub.add_client_error("put_item", "TransactionConflictException")
    with pytest.raises(Unavailable):
        rows.write(put(ROW, MISSING))
    assert no_waiting


def delete_request(name: str) -> dict[str, Any]:
    return {"DeleteRequest": {"Key": {"pk": {"S": "p"}, "sk": {"S": name}}}}


def test_unprocessed_writes_are_sent_again(scripted: Scripted, no_waiting: list[float]) -> None:
    left = [delete_request("3"), delete_request("7")]
    rows, stub = scripted
    stub.add_response("batch_write_item", {"UnprocessedItems": {"table": left}}, {"RequestItems": ANY})
    stub.add_response("batch_write_item", {"UnprocessedItems": {"table": left[:1]}}, {"RequestItems": {"table": left}})
    stub.add_response("batch_write_item", {"UnprocessedItems": {}}, {"RequestItems": {"table": left[:1]}})
    stub.add_response(
        "batch_write_item", {}, {"RequestItems": {"table": [delete_request(str(n)) for n in range(25, 30)]}}
    )
    rows.delete([("p", str(number)) for number in range(30)])
    assert len(no_waiting) == 2


def test_writes_that_are_never_processed_are_a_retryable_error(scripted: Scripted, no_waiting: list[float]) -> None:
    rows, stub = scripted
    for _ in range(backoff.ATTEMPTS):
        stub.add_response("batch_write_item", {"UnprocessedItems": {"table": [delete_request("1")]}})
    with pytest.raises(Unavailable):
        rows.delete([("p", "1")])
    assert no_waiting


def test_unprocessed_reads_are_requested_again(scripted: Scripted, no_waiting: list[float]) -> None:
    second = {"pk": {"S": "p"}, "sk": {"S": "t"}}
    left = {"table": {"Keys": [second], "ConsistentRead": True}}
    rows, stub = scripted
    stub.add_response("batch_get_item", {"Responses": {"table": [KEY]}, "UnprocessedKeys": left})
    stub.add_response("batch_get_item", {"Responses": {"table": [second]}}, {"RequestItems": left})
    assert set(rows.get_many([("p", "s"), ("p", "t"), ("p", "s")])) == {("p", "s"), ("p", "t")}
    assert len(no_waiting) == 1


def test_reads_that_are_never_processed_are_a_retryable_error(scripted: Scripted, no_waiting: list[float]) -> None:
    left = {"table": {"Keys": [KEY]}}
    rows, stub = scripted
    for _ in range(backoff.ATTEMPTS):
        stub.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": left})
    with pytest.raises(Unavailable):
        rows.get_many([("p", "s")])
    assert no_waiting


def test_a_scan_that_dynamodb_throttles_can_be_repeated(scripted: Scripted) -> None:
    """`cloudpar usage` reads the table in such scans, and its client repeats a request that may succeed."""
    rows, stub = scripted
    stub.add_client_error("scan", "ProvisionedThroughputExceededException")
    with pytest.raises(Unavailable):
        rows.scan_part("used = :used", {"used": 1}, ["pk"], pages=1, after=None)
