"""DynamoAccountStore, beyond what the port's suite tests."""

from collections.abc import Iterator
from typing import Any

import pytest

from cloudpar_master.adapters.aws import backoff
from cloudpar_master.adapters.aws.account_store import (
    KNOWN_TOKENS,
    MEMORY_S,
    PLENTY_US,
    USAGE_PAGES,
    DynamoAccountStore,
)
from cloudpar_master.adapters.aws.table import Table
from cloudpar_master.ports import AccountRecord, DayUsage, Reservation, UsagePart
from cloudpar_protocol.errors import BadRequest, IdempotencyConflict, Unavailable
from master.conformance.test_accounts import make_account
from support.clock import SetClock
from support.stores import Stores

from .stubs import Stubber, offline, stubbed
from .test_table import cancelled

Scripted = tuple[DynamoAccountStore, Stubber]


def rows(stores: Stores) -> dict[tuple[str, str], dict[str, Any]]:
    assert isinstance(stores.accounts, DynamoAccountStore)
    table = stores.accounts._table
    items = table._client.scan(TableName=table._name)["Items"]
    return {(str(item["pk"]["S"]), str(item["sk"]["S"])): item for item in items}


@pytest.fixture
def scripted(clock: SetClock) -> Iterator[Scripted]:
    client = offline().dynamodb
    with stubbed(client) as stub:
        yield DynamoAccountStore(Table(client, "t"), clock), stub


def test_the_free_quota_is_stored_beside_its_parts(stores: Stores) -> None:
    accounts = stores.accounts
    accounts.create(make_account())
    accounts.reserve("a", "p", 0, 300)
    accounts.reserve("a", "q", 0, 200)
    accounts.settle("a", "p", 450)
    accounts.grant("a", "k", -50)
    account = accounts.get("a")
    assert account is not None
    assert (account.granted_us, account.spent_us, account.reserved_us) == (950, 450, 200)
    assert rows(stores)["a#a", "account"]["free_us"]["N"] == str(account.free_us) == "300"


def test_an_account_of_an_earlier_release_keeps_its_name_without_a_row_for_it(stores: Stores) -> None:
    stores.accounts.create(make_account())
    assert isinstance(stores.accounts, DynamoAccountStore)
    table = stores.accounts._table
    table._client.delete_item(TableName=table._name, Key={"pk": {"S": "n#name of a"}, "sk": {"S": "name"}})
    with pytest.raises(IdempotencyConflict, match="already"):
        stores.accounts.create(make_account("b")._replace(name="name of a"))


def test_the_tasks_of_an_account_of_an_earlier_release_may_use_the_network(stores: Stores) -> None:
    stores.accounts.create(make_account())
    assert isinstance(stores.accounts, DynamoAccountStore)
    table = stores.accounts._table
    table._client.update_item(
        TableName=table._name,
        Key={"pk": {"S": "a#a"}, "sk": {"S": "account"}},
        UpdateExpression="REMOVE network",
    )
    assert "network" not in rows(stores)["a#a", "account"]
    assert (stores.accounts.list()[0].network, stores.accounts.network("a")) == ("outbound", "outbound")


def test_an_account_found_by_its_token_is_a_few_seconds_old_at_most(stores: Stores, clock: SetClock) -> None:
    stores.accounts.create(make_account())
    assert isinstance(stores.accounts, DynamoAccountStore)
    others = DynamoAccountStore(stores.accounts._table, clock)
    assert others.by_token("hash of a") == make_account()
    stores.accounts.revoke("a")
    assert others.by_token("hash of a") == make_account()
    clock.move(MEMORY_S)
    found = others.by_token("hash of a")
    assert found is not None
    assert found.state == "revoked"


def test_an_operators_change_by_this_process_shows_at_once(stores: Stores) -> None:
    stores.accounts.create(make_account())

    def seen() -> AccountRecord:
        account = stores.accounts.by_token("hash of a")
        assert account is not None
        assert account == stores.accounts.get("a")
        return account

    assert seen().free_us == 1000
    stores.accounts.grant("a", "k", 11)
    assert seen().granted_us == 1011
    stores.accounts.revoke("a")
    assert seen().state == "revoked"


def test_a_large_free_quota_may_be_read_from_the_cache(stores: Stores, clock: SetClock) -> None:
    stores.accounts.create(make_account()._replace(granted_us=PLENTY_US + 100))
    assert stores.accounts.free_us("a") == PLENTY_US + 100
    stores.accounts.reserve("a", "p", 0, 101)
    assert stores.accounts.free_us("a") == PLENTY_US + 100
    clock.move(MEMORY_S)
    assert stores.accounts.free_us("a") == PLENTY_US - 1
    stores.accounts.reserve("a", "p", 1, 10)
    assert stores.accounts.free_us("a") == PLENTY_US - 11, "a small rest is read from the table"


@pytest.mark.parametrize("hint_us", [0, 1, 449, 450, 451, 10**6])
def test_a_wrong_hint_changes_no_charge(stores: Stores, hint_us: int) -> None:
    stores.accounts.create(make_account())
    for number, wanted_us in enumerate((300, 150)):
        stores.accounts.reserve("a", "p", number, wanted_us)
    assert stores.accounts.settle("a", "p", 400, hint_us) == 400
    assert stores.accounts.settle("a", "p", 17, hint_us) == 400
    account = stores.accounts.get("a")
    assert account is not None
    assert (account.spent_us, account.reserved_us, account.free_us) == (400, 0, 600)


def test_the_number_of_cached_tokens_is_bounded(stores: Stores) -> None:
    accounts = stores.accounts
    assert isinstance(accounts, DynamoAccountStore)
    accounts.create(make_account())
    accounts._owners.update({f"t{number}": f"x{number}" for number in range(KNOWN_TOKENS)})
    assert accounts.by_token("hash of a") == make_account()
    assert len(accounts._owners) == KNOWN_TOKENS


def test_a_slice_of_nothing_is_not_stored(stores: Stores) -> None:
    stores.accounts.create(make_account())
    assert stores.accounts.reserve("a", "p", 0, 0).granted_us == 0
    assert stores.accounts.reserve("a", "p", 0, 300) == Reservation(300, exhausted=False)


def test_a_slice_costs_one_call(scripted: Scripted) -> None:
    store, stub = scripted
    stub.add_response("transact_write_items", {})
    assert store.reserve("a", "p", 0, 5) == Reservation(5, exhausted=False)


def test_a_busy_account_is_a_retryable_error(scripted: Scripted, no_waiting: list[float]) -> None:
    store, stub = scripted
    for _ in range(backoff.ATTEMPTS):
        cancelled(stub, "None", "None", "TransactionConflict")
    with pytest.raises(Unavailable):
        store.reserve("a", "p", 0, 5)
    assert no_waiting


def test_quota_that_others_take_in_between_is_not_reserved_twice(scripted: Scripted, no_waiting: list[float]) -> None:
    """The quota that was free when the condition failed is gone at the next attempt."""
    account = {"pk": {"S": "a#a"}, "state": {"S": "active"}, "free_us": {"N": "3"}, "reserved_us": {"N": "9"}}
    store, stub = scripted
    cancelled(stub, "None", "None", "ConditionalCheckFailed", Item=account)
    cancelled(stub, "None", "None", "ConditionalCheckFailed", Item={**account, "free_us": {"N": "0"}})
    stub.add_response("get_item", {"Item": {"pk": {"S": "p#p"}, "held_us": {"N": "4"}}})
    assert store.reserve("a", "p", 0, 5) == Reservation(0, exhausted=False)
    assert len(no_waiting) == 1


def test_a_list_of_charges_in_parts_is_complete_and_reads_only_so_many_pages_at_a_time(scripted: Scripted) -> None:
    accounts, stub = scripted

    def key(number: int) -> dict[str, Any]:
        return {"pk": {"S": f"p#{number}"}, "sk": {"S": "settlement"}}

    def charge(us: int) -> dict[str, Any]:
        return {"account_id": {"S": "a"}, "settled_on": {"S": "2026-11-24"}, "charged_us": {"N": str(us)}}

    common = {
        "TableName": "t", "FilterExpression": "settled_on >= :since",
        "ExpressionAttributeValues": {":since": {"S": "2026-11-01"}},
        "ProjectionExpression": "account_id, settled_on, charged_us",
    }  # fmt: skip
    for page in range(USAGE_PAGES + 1):
        last = {} if page == USAGE_PAGES else {"LastEvaluatedKey": key(page)}
        after = {} if page == 0 else {"ExclusiveStartKey": key(page - 1)}
        stub.add_response("scan", {"Items": [charge(10**page)] * 2} | last, common | after)
    first = accounts.usage("2026-11-01")
    assert first.usage == [DayUsage("a", "2026-11-24", 2 * 1_111_111_111, 2 * USAGE_PAGES)]
    assert accounts.usage("2026-11-01", first.cursor) == UsagePart([DayUsage("a", "2026-11-24", 2 * 10**10, 2)], None)


@pytest.mark.parametrize("cursor", ["", "p#1", '["p#1"]', '["p", "s", "t"]', "{}"])
def test_a_cursor_of_charges_that_no_reply_had_is_refused(scripted: Scripted, cursor: str) -> None:
    accounts, _ = scripted
    with pytest.raises(BadRequest, match="start with the first part"):
        accounts.usage("2026-11-01", cursor)


def test_a_settlement_of_an_earlier_release_does_not_count(stores: Stores) -> None:
    """Its row has neither account nor day."""
    stores.accounts.create(make_account())
    stores.accounts.settle("a", "p", 10)
    assert isinstance(stores.accounts, DynamoAccountStore)
    table = stores.accounts._table
    earlier = {"pk": {"S": "p#q"}, "sk": {"S": "settlement"}, "charged_us": {"N": "5"}, "held_us": {"N": "0"}}
    table._client.put_item(TableName=table._name, Item=earlier)
    assert [each.charged_us for each in stores.accounts.usage("2000-01-01").usage] == [10]
