"""DynamoPackageStore, beyond what the port's suite tests."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar_master.adapters.aws.objects import Objects
from cloudpar_master.adapters.aws.package_rows import SHARDS, SPEC_BYTES, shard
from cloudpar_master.adapters.aws.package_store import DAY_S, FORGET_BATCH, DynamoPackageStore
from cloudpar_master.adapters.aws.result_pages import OBJECT_ROOM, ROW_BYTES
from cloudpar_master.adapters.aws.table import Change, Table
from cloudpar_master.core.events import Acknowledged, ExecutorsIdle, Published
from cloudpar_master.core.head import Spec
from cloudpar_master.ports import ResultPage, Unreadable
from cloudpar_protocol.errors import TooLarge
from cloudpar_protocol.payloads import InlineData, TaskResult
from support.clock import NOW, SetClock
from support.heads import altered
from support.packages import create, forget, inbox, make_head, make_results, make_spec, put_page
from support.stores import Stores

from .stores import KEPT_S, on_moto
from .stubs import ANY, Stubber, offline, stubbed

NO_OBJECTS = Objects(lambda: offline().s3, "none")


Scripted = tuple[DynamoPackageStore, Stubber]


class SetIds:
    """Yields the same id each time."""

    def fresh(self) -> str:
        return "writer"


@pytest.fixture
def scripted(clock: SetClock) -> Iterator[Scripted]:
    client = offline().dynamodb
    with stubbed(client) as stub:
        yield DynamoPackageStore(Table(client, "t"), NO_OBJECTS, clock, SetIds(), KEPT_S), stub


@pytest.fixture
def others(tmp_path: Path, clock: SetClock, stores: Stores) -> Iterator[Stores]:
    """Open the adapters of another process."""
    with on_moto(tmp_path, clock) as others:
        yield others


@pytest.fixture
def client(stores: Stores) -> Any:
    return table_of(stores)._client


@pytest.fixture
def name(stores: Stores) -> str:
    return table_of(stores)._name


def table_of(stores: Stores) -> Table:
    assert isinstance(stores.packages, DynamoPackageStore)
    return stores.packages._table


def rows(stores: Stores) -> list[dict[str, Any]]:
    table = table_of(stores)
    pages = table._client.get_paginator("scan").paginate(TableName=table._name)
    return [row for page in pages for row in page["Items"]]


def head_rows(stores: Stores) -> list[dict[str, Any]]:
    return [row for row in rows(stores) if row["sk"]["S"] == "head"]


def noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


def published(data: bytes) -> Published:
    return Published(worker_id="w", executors=1, generation=1, results=[TaskResult(0, "ok", 1, data=data)])


def page_rows(stores: Stores) -> list[Any]:
    return sorted((row for row in rows(stores) if row["sk"]["S"].startswith("r#")), key=lambda row: row["sk"]["S"])


def test_every_row_of_a_package_expires(stores: Stores) -> None:
    create(stores.packages)
    stores.packages.append("p", [("k", Acknowledged())])
    put_page(stores.packages, make_results(1))
    found = rows(stores)
    assert sorted(row["sk"]["S"].partition("#")[0] for row in found) == ["head", "i", "r", "spec"]
    for row in found:
        last_day = int(row["expires_at"]["N"])
        assert KEPT_S < last_day - NOW <= KEPT_S + DAY_S
        assert last_day % DAY_S == 0


def test_a_save_that_was_sent_twice_counts_as_won(scripted: Scripted) -> None:
    """The answer to the first request was lost, so the library sent it again."""
    store, stub = scripted
    for writer, won in (("writer", True), ("another", False)):
        stub.add_client_error(
            "put_item", "ConditionalCheckFailedException",
            modeled_fields={"Item": {"pk": {"S": "p"}, "writer": {"S": writer}}},
        )  # fmt: skip
        assert store.save(make_head(make_spec(), 1), NOW) is won


@pytest.mark.parametrize(
    ("version", "writer", "won"), [(2, "another", False), (1, "writer", True), (None, None, False)],
)  # fmt: skip
def test_a_head_that_is_being_written_is_read_before_a_retry(
    scripted: Scripted, version: int | None, writer: str | None, won: bool
) -> None:
    """Retrying a race that is already lost would take seconds."""
    store, stub = scripted
    row = {"pk": {"S": "p"}, "sk": {"S": "head"}, "version": {"N": str(version)}, "writer": {"S": str(writer)}}
    stub.add_client_error("put_item", "TransactionConflictException")
    stub.add_response("get_item", {} if version is None else {"Item": row})
    assert store.save(make_head(make_spec(), 1), NOW) is won


def test_a_save_is_retried_while_the_head_is_unchanged(scripted: Scripted, no_waiting: list[float]) -> None:
    store, stub = scripted
    row = {"pk": {"S": "p"}, "sk": {"S": "head"}, "version": {"N": "0"}, "writer": {"S": "another"}}
    stub.add_client_error("put_item", "TransactionConflictException")
    stub.add_response("get_item", {"Item": row})
    stub.add_response("put_item", {})
    assert store.save(make_head(make_spec(), 1), NOW)
    assert no_waiting


def test_the_object_of_a_race_that_was_lost_is_removed(stores: Stores) -> None:
    head = make_head(make_spec())
    stores.packages.create(make_spec(), head)
    large = [TaskResult(0, "ok", 1, data=noise(20_000))]
    assert stores.packages.save(replace(head, version=1, page=1), NOW, large)
    assert not stores.packages.save(replace(head, version=1, page=1), NOW, large)
    (row,) = page_rows(stores)
    assert isinstance(stores.packages, DynamoPackageStore)
    objects = stores.packages._objects
    found = objects._client().list_objects_v2(Bucket=objects._bucket, Prefix="results/p/")["Contents"]
    assert [each["Key"] for each in found] == [row["object"]["S"]]


def test_the_registry_changes_once_a_minute_at_most(stores: Stores, client: Any, name: str, clock: SetClock) -> None:
    store = DynamoPackageStore(Table(client, name), NO_OBJECTS, clock, stores.ids, KEPT_S)
    spec = create(store, started_at=NOW + 1)
    places = set()
    for version, second in enumerate((1.0, 2.0, 30.0, 59.5, 60.0), 1):
        assert store.save(make_head(spec, version), NOW + second)
        places |= {row["due_at"]["N"] for row in head_rows(stores)}
    assert places == {f"{NOW + 60:.0f}"}
    assert store.due(NOW + 59, 10) == []
    assert store.due(NOW + 60, 10) == ["p"]


def test_the_registry_has_several_shards_and_is_read_whole(stores: Stores) -> None:
    names = [f"p{number}" for number in range(20)]
    assert {shard(name) for name in names} == set(range(SHARDS))
    for number, name in enumerate(names):
        spec = create(stores.packages, name)
        stores.packages.save(make_head(spec, 1), NOW + number)
    assert stores.packages.due(NOW + 15, 100) == names[:16]
    assert stores.packages.due(NOW + 15, 3) == names[:3]


def test_the_indexes_are_sparse(stores: Stores) -> None:
    """The index of packages with tasks outside of chunks has no row of a package whose tasks are all in chunks."""
    spec = create(stores.packages)
    (head,) = head_rows(stores)
    assert head["uncut"]["S"] == "0"
    stores.packages.save(make_head(spec, 1, cursor=4), NOW)
    (head,) = head_rows(stores)
    assert "uncut" not in head
    assert "uncut_since" not in head


def test_the_index_of_unsettled_packages_is_sparse_too(stores: Stores) -> None:
    """Each start reads it: a package that has ended leaves its figures there until it is settled."""
    spec = create(stores.packages)
    ended = altered(make_head(spec, 1), state="completed")
    found = [unsettled_row(stores)]
    for head in (ended, altered(ended, version=2, settled=True)):
        stores.packages.save(head, NOW)
        found.append(unsettled_row(stores))
    assert found == [{"unsettled": "a", "tasks": "4", "data_bytes": "10"}, {"unsettled": "a"}, {}]


def unsettled_row(stores: Stores) -> dict[str, str]:
    """Return the only package's row in that index."""
    (head,) = head_rows(stores)
    names = ("unsettled", "tasks", "data_bytes")
    return {name: next(iter(head[name].values())) for name in names if name in head}


def test_repetitive_rows_are_compressed(stores: Stores) -> None:
    results = [TaskResult(index, "ok", 1000, data=b"\x80\x04K*.") for index in range(400)]
    version = put_page(stores.packages, results)
    (row,) = page_rows(stores)
    assert len(row["results"]["B"]) < ROW_BYTES
    assert stores.packages.pages("p", 0, 9, 1) == [ResultPage(version, results)]


def test_a_large_page_is_an_object_that_its_row_names(stores: Stores, client: Any) -> None:
    large, small = [TaskResult(0, "ok", 1, data=noise(20_000))], make_results(1)
    versions = [put_page(stores.packages, results) for results in (large, small)]
    first, second = page_rows(stores)
    assert "results" not in first
    assert "object" not in second
    assert first["object"]["S"].startswith("results/p/pages/")
    pages = [ResultPage(version, results) for version, results in zip(versions, (large, small), strict=True)]
    assert stores.packages.pages("p", 0, 9, 10**6) == pages
    stores.blobs.delete("results/p/")
    assert stores.packages.pages("p", 0, 9, 10**6) == [], "its package was deleted meanwhile"


def large_spec(*, started_at: float = NOW) -> Spec:
    return make_spec(data=InlineData([noise(SPEC_BYTES)] * 4), started_at=started_at)


def objects(stores: Stores) -> list[str]:
    """Return the keys of the package's objects in the bucket."""
    assert isinstance(stores.packages, DynamoPackageStore)
    made = stores.packages._objects
    found = made._client().list_objects_v2(Bucket=made._bucket, Prefix="results/p/")
    return [each["Key"] for each in found.get("Contents", [])]


def test_a_large_spec_is_an_object_that_its_row_names(stores: Stores, others: Stores) -> None:
    spec = large_spec()
    head = make_head(spec)
    assert stores.packages.create(spec, head) is spec
    (row,) = (row for row in rows(stores) if row["sk"]["S"] == "spec")
    assert [row["object"]["S"]] == objects(stores)
    assert sum(len(str(value)) for value in row.values()) < 1_000
    assert others.packages.spec("p") == spec
    assert others.packages.find(["p"]) == {"p": (head, spec)}


def test_a_start_that_is_repeated_keeps_the_object_of_the_first_one(stores: Stores, others: Stores) -> None:
    spec = large_spec()
    stores.packages.create(spec, make_head(spec))
    before = objects(stores)
    repeated = large_spec(started_at=NOW + 1)
    stored = others.packages.create(repeated, make_head(repeated))
    assert (stored.request_hash, stored.started_at) == (spec.request_hash, spec.started_at)
    assert objects(stores) == before
    assert others.packages.spec("p") == spec


def test_a_start_that_botocore_repeats_keeps_its_object(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    table, spec = table_of(stores), large_spec()
    transact = table.transact

    def transact_twice(changes: Sequence[Change]) -> Any:
        assert transact(changes) is None
        return transact(changes)

    monkeypatch.setattr(table, "transact", transact_twice)
    stores.packages.create(spec, make_head(spec))
    assert stores.packages.spec("p") == spec


def test_a_spec_without_its_object_is_unreadable_and_can_be_freed(stores: Stores, others: Stores) -> None:
    spec = large_spec()
    head = make_head(spec)
    stores.packages.create(spec, head)
    stores.blobs.delete("results/p/")
    with pytest.raises(Unreadable):
        others.packages.spec("p")
    assert others.packages.find(["p"]) == {"p": (head, None)}
    assert others.packages.delete_pages("p")
    assert others.packages.spec("p") == stores.packages.spec("p") == spec.freed()


def test_the_objects_of_a_small_package_go_with_its_rows(stores: Stores) -> None:
    spec = large_spec()
    head = make_head(spec)
    stores.packages.create(spec, head)
    put_page(stores.packages, [TaskResult(0, "ok", 1, data=noise(ROW_BYTES))])
    assert len(objects(stores)) == 2
    forget(stores.packages)
    assert not objects(stores)
    assert not rows(stores)


def test_objects_count_for_more_than_their_bytes_when_pages_are_read(stores: Stores) -> None:
    for number in range(4):
        put_page(stores.packages, [TaskResult(number, "ok", 1, data=noise(20_000))])
    assert len(stores.packages.pages("p", 0, 9, 2 * OBJECT_ROOM)) == 2


def test_event_keys_may_have_any_length(stores: Stores) -> None:
    create(stores.packages)
    keys = ["é" * 700, "x" * 1000, "short"]
    stores.packages.append("p", [(key, ExecutorsIdle(executors=1)) for key in keys])
    assert [item.key for item in inbox(stores.packages)] == keys
    stores.packages.delete_events("p", keys[:2])
    assert [item.key for item in inbox(stores.packages)] == keys[2:]


@pytest.mark.parametrize(
    "damaged",
    [b"\x78nonsense", b"\xc1", b"", b"\x82\xa4type\xa6broken\xa7message\xa1\xff"],
    ids=["compressed", "plain", "empty", "not UTF-8"],
)
def test_an_unreadable_event_is_set_aside_by_its_key(stores: Stores, client: Any, name: str, damaged: bytes) -> None:
    create(stores.packages)
    stores.packages.append("p", [("good", Acknowledged())])
    client.put_item(
        TableName=name,
        Item={"pk": {"S": "p"}, "sk": {"S": "i#bad"}, "event": {"B": damaged}, "at": {"N": f"{10**17}"}},
    )
    assert [(item.key, item.event) for item in inbox(stores.packages)] == [
        ("good", Acknowledged()),
        ("bad", None),
    ]


def test_an_event_that_no_row_holds_is_refused(stores: Stores) -> None:
    with pytest.raises(TooLarge, match="fewer"):
        stores.packages.append("p", [("k", published(noise(400_000)))])


@pytest.mark.parametrize("oldest_first", [True, False])
def test_a_long_inbox_is_read_a_megabyte_at_a_time_in_the_order_of_keys(
    real_tables: Stores, oldest_first: bool
) -> None:
    create(real_tables.packages)
    events = [(f"{number:02}", published(noise(250_000))) for number in range(12)]
    events = events if oldest_first else events[::-1]
    real_tables.packages.append("p", events)
    seen: list[str] = []
    while items := inbox(real_tables.packages):
        assert len(items) <= 5
        seen += [item.key for item in items]
        real_tables.packages.delete_events("p", [item.key for item in items])
    assert seen[0] < "05"
    assert sorted(seen) == [f"{number:02}" for number in range(12)]
    assert seen == [key for key, _ in events] or not oldest_first


def test_rows_that_a_crash_of_forget_left_are_forgotten_again(stores: Stores, client: Any, name: str) -> None:
    create(stores.packages)
    client.delete_item(TableName=name, Key={"pk": {"S": "p"}, "sk": {"S": "spec"}})
    assert stores.packages.load("p") is not None
    forget(stores.packages)
    assert rows(stores) == []


@pytest.mark.parametrize("events", [0, 1, FORGET_BATCH, 2 * FORGET_BATCH + 1])
def test_all_rows_of_a_package_are_forgotten(stores: Stores, events: int) -> None:
    create(stores.packages)
    stores.packages.append("p", [(f"{number}", Acknowledged()) for number in range(events)])
    forget(stores.packages)
    assert rows(stores) == []


def test_a_later_package_keeps_its_rows_if_it_starts_while_a_slow_process_forgets_the_earlier_one(
    stores: Stores, client: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow process has read the names of all rows. Rows of the later package have the same names."""
    events = [(f"{number}", Acknowledged()) for number in range(2 * FORGET_BATCH)]
    earlier = create(stores.packages)
    stores.packages.append("p", events)
    assert isinstance(stores.packages, DynamoPackageStore)
    slow = DynamoPackageStore(Table(client, name), stores.packages._objects, SetClock(), stores.ids, KEPT_S)
    transact, later = slow._table.transact, large_spec(started_at=NOW + 86_400)

    def transact_late(changes: Sequence[Change]) -> Any:
        if stores.packages.load("p") == make_head(earlier):
            forget(stores.packages)
            stores.packages.create(later, make_head(later))
            stores.packages.append("p", events)
        return transact(changes)

    monkeypatch.setattr(slow._table, "transact", transact_late)
    assert not slow.forget(make_head(earlier))
    assert (stores.packages.load("p"), stores.packages.spec("p")) == (make_head(later), later)
    assert len(inbox(stores.packages)) == len(events)


def test_a_package_that_is_being_forgotten_is_not_made_yet(
    stores: Stores, client: Any, name: str, no_waiting: list[float]
) -> None:
    spec = create(stores.packages)
    client.delete_item(TableName=name, Key={"pk": {"S": "p"}, "sk": {"S": "spec"}})
    with pytest.raises(Exception, match="busy"):
        stores.packages.create(spec, make_head(spec))
    forget(stores.packages)
    assert stores.packages.create(spec, make_head(spec)) is spec
    assert no_waiting


def test_an_event_of_a_master_whose_clock_is_behind_is_not_lost(stores: Stores, client: Any, name: str) -> None:
    """An earlier release has stored it, so that it does not name its package's start time."""
    store = DynamoPackageStore(Table(client, name), NO_OBJECTS, SetClock(), stores.ids, KEPT_S)
    create(store)
    store.append("p", [("early", Acknowledged())])
    (early,) = (row for row in rows(stores) if row["sk"]["S"] == "i#early")
    del early["born"]
    early["at"] = {"N": str(int(early["at"]["N"]) - 60 * 10**6)}
    client.put_item(TableName=name, Item=early)
    assert [item.key for item in inbox(store)] == ["early"]


def test_an_event_that_is_stored_after_its_package_was_removed_is_not_taken_in_by_a_later_package(
    stores: Stores, others: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The later package is created by another process than the one that reads it."""
    create(stores.packages)
    table = table_of(stores)
    write = table.write

    def write_late(change: Change, **more: Any) -> Any:
        forget(others.packages)
        create(others.packages, started_at=NOW + DAY_S)
        return write(change, **more)

    monkeypatch.setattr(table, "write", write_late)
    stores.packages.append("p", [("k", Acknowledged())])
    monkeypatch.undo()
    assert "i#k" in {row["sk"]["S"] for row in rows(stores)}
    others.packages.append("p", [("k", ExecutorsIdle(executors=1))])
    assert [(item.key, item.event) for item in inbox(stores.packages)] == [("k", ExecutorsIdle(executors=1))]


def test_an_orphaned_event_is_deleted_by_the_first_process_that_reads_the_inbox(
    stores: Stores, others: Stores, client: Any, name: str
) -> None:
    create(stores.packages)
    stores.packages.append("p", [("k", Acknowledged())])
    (orphan,) = (row for row in rows(stores) if row["sk"]["S"] == "i#k")
    forget(stores.packages)
    create(stores.packages, started_at=NOW + DAY_S)
    client.put_item(TableName=name, Item=orphan)
    assert inbox(others.packages) == []
    assert "i#k" not in {row["sk"]["S"] for row in rows(stores)}


def test_an_event_of_a_package_that_does_not_exist_leaves_no_row(stores: Stores) -> None:
    stores.packages.append("p", [("k", Acknowledged())])
    assert rows(stores) == []


def test_a_slow_process_does_not_free_the_spec_of_a_later_package(
    stores: Stores, others: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(stores.packages)
    table, later = table_of(stores), make_spec(started_at=NOW + DAY_S, tasks=7)
    transact = table.transact

    def transact_late(changes: Sequence[Change]) -> Any:
        if others.packages.spec("p") != later:
            forget(others.packages)
            others.packages.create(later, make_head(later))
        return transact(changes)

    monkeypatch.setattr(table, "transact", transact_late)
    stores.packages.delete_pages("p")
    assert others.packages.spec("p") == later


def test_rows_of_an_earlier_package_are_cleared_away(stores: Stores, client: Any, name: str) -> None:
    old = {"pk": {"S": "p"}, "sk": {"S": "i#old"}, "event": {"B": b"x"}, "at": {"N": "1"}}
    client.put_item(TableName=name, Item=old)
    spec = make_spec()
    store = DynamoPackageStore(Table(client, name), NO_OBJECTS, SetClock(), stores.ids, KEPT_S)
    store.create(spec, make_head(spec))
    stores.packages.append("p", [("new", Acknowledged())])
    assert [item.key for item in inbox(store)] == ["new"]
    assert "i#old" not in {row["sk"]["S"] for row in rows(stores)}


def index_lags(stub: Stubber, stores: Stores, *listed: str) -> None:
    """Let an index list packages; the heads of those that exist are as in these stores."""
    items = [{"pk": {"S": name}, "sk": {"S": "head"}, "started_at": {"N": "1"}} for name in listed]
    stub.add_response("query", {"Items": items}, None)
    stub.add_response("batch_get_item", {"Responses": {"t": head_rows(stores)}}, {"RequestItems": ANY})


def test_a_package_whose_head_is_not_in_the_table_is_not_listed(scripted: Scripted, stores: Stores) -> None:
    store, stub = scripted
    head = make_head(make_spec("q"))
    stores.packages.create(make_spec("q"), head)
    index_lags(stub, stores, "p", "q")
    assert list(store.of_account("a", 10)) == [head]


def test_a_package_that_was_settled_a_moment_ago_is_not_unsettled(scripted: Scripted, stores: Stores) -> None:
    store, stub = scripted
    stores.packages.create(make_spec("p"), altered(make_head(make_spec("p")), state="completed", settled=True))
    index_lags(stub, stores, "p")
    assert list(store.unsettled("a")) == []
