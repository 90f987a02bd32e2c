"""PackageStore: heads and specs."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.core.events import Acknowledged
from cloudpar_master.core.head import Head
from cloudpar_protocol.payloads import InlineData, RangeData
from cloudpar_protocol_tools.samples import samples
from master.races import race
from support.clock import NOW, SetClock
from support.packages import create, forget, inbox, make_head, make_results, make_spec
from support.stores import Factory, Stores

RACERS = 16
DAY_S = 86_400.0


def test_an_unknown_package_is_none(stores: Stores) -> None:
    assert stores.packages.load("p") is None
    assert stores.packages.spec("p") is None
    assert not stores.packages.save(make_head(make_spec(), 1), 0.0)
    stores.packages.delete_pages("p")
    assert not stores.packages.forget(make_head(make_spec()))
    assert stores.packages.load("p") is None


def test_create_writes_spec_and_head(stores: Stores, others: Stores) -> None:
    spec, head = make_spec(), make_head(make_spec(), 1)
    assert stores.packages.create(spec, head) is spec
    for each in (stores, others):
        assert each.packages.spec("p") == spec
        assert each.packages.load("p") == head


def test_a_package_that_is_created_again_stays_as_it_is(stores: Stores, others: Stores) -> None:
    first, second = make_spec(), make_spec(data=RangeData(0, 1), started_at=5.0)
    stores.packages.create(first, make_head(first, 1))
    for each in (stores, others):
        stored = each.packages.create(second, make_head(second, 7))
        assert stored == first
        assert stored is not second
    head = others.packages.load("p")
    assert head is not None
    assert head.version == 1


def test_a_retry_of_create_returns_another_object_than_its_own_spec(stores: Stores, others: Stores) -> None:
    create(stores.packages, version=1)
    again = make_spec()
    assert others.packages.create(again, make_head(again, 1)) is not again


def test_of_many_creations_at_once_one_wins(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    specs = [make_spec(data=RangeData(number, 1)) for number in range(RACERS)]
    stored = race(
        factory, tmp_path, clock, RACERS,
        lambda racer, number: racer.packages.create(specs[number], make_head(specs[number], 1)),
    )  # fmt: skip
    winners = [spec for number, spec in enumerate(stored) if spec is specs[number]]
    assert len(winners) == 1
    assert stored == winners * RACERS


@pytest.mark.parametrize("sample", samples(Head))
def test_a_whole_head_comes_back(stores: Stores, others: Stores, sample: Head) -> None:
    create(stores.packages, version=1, started_at=sample.started_at)
    head = replace(sample, package_id="p", version=2)
    assert stores.packages.save(head, 9.0)
    assert others.packages.load("p") == head


def test_a_head_is_saved_only_over_the_version_before_it(stores: Stores, others: Stores) -> None:
    spec = create(stores.packages, version=1)
    for version in (0, 1, 3):
        assert not stores.packages.save(make_head(spec, version), 0.0)
    assert stores.packages.save(make_head(spec, 2), 0.0)
    assert not others.packages.save(make_head(spec, 2), 0.0)
    assert others.packages.save(make_head(spec, 3), 0.0)


def test_of_many_saves_at_once_one_wins(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    spec = create(stores.packages)
    heads = [make_head(spec, 1, cursor=number) for number in range(RACERS)]

    saved = race(
        factory, tmp_path, clock, RACERS, lambda racer, number: racer.packages.save(heads[number], float(number))
    )

    assert saved.count(True) == 1
    assert stores.packages.load("p") == heads[saved.index(True)]


def test_every_save_of_a_race_counts_once(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    """Like folds, each racer loads a head, adds one, and tries again until its own save wins."""
    spec, turns = make_spec(), 10

    def add(racer: Stores, number: int) -> None:
        racer.packages.create(spec, make_head(spec, 0))
        for _ in range(turns):
            while True:
                head = racer.packages.load("p")
                assert head is not None
                head.version, head.quota.used_us = head.version + 1, head.quota.used_us + 1
                if racer.packages.save(head, 0.0):
                    break

    race(factory, tmp_path, clock, 4, add)
    head = stores.packages.load("p")
    assert head is not None
    assert (head.version, head.quota.used_us) == (4 * turns, 4 * turns)


def test_a_cached_spec_is_the_stored_one(stores: Stores) -> None:
    specs = [make_spec(f"p{number}") for number in range(200)]
    for spec in specs:
        stores.packages.create(spec, make_head(spec))
    for _ in range(2):
        assert [stores.packages.spec(spec.package_id) for spec in specs] == specs


def test_deleted_pages_take_the_inlined_data_along(stores: Stores, others: Stores) -> None:
    spec = make_spec(data=InlineData([b"secret"] * 4))
    stores.packages.create(spec, make_head(spec, 1))
    stores.packages.delete_pages("p")
    for each in (stores, others):
        freed = each.packages.spec("p")
        assert freed is not None
        assert isinstance(freed.start.data, InlineData)
        assert freed.start.data.items == []
        assert freed.request_hash == spec.request_hash
        assert each.packages.load("p") == make_head(spec, 1)
    stores.packages.delete_pages("p")


def test_only_the_head_that_is_stored_is_forgotten(stores: Stores, others: Stores) -> None:
    """Another process has saved the tombstone after this one has read it."""
    spec = create(stores.packages, version=1)
    assert others.packages.save(make_head(spec, 2), NOW)
    assert not stores.packages.forget(make_head(spec, 1))
    assert others.packages.load("p") == make_head(spec, 2)
    assert stores.packages.forget(make_head(spec, 2))
    assert others.packages.load("p") is None


def test_a_slow_process_neither_forgets_nor_replaces_a_later_package_with_the_same_id(
    stores: Stores, others: Stores
) -> None:
    earlier = create(stores.packages, version=1)
    forget(others.packages)
    later = create(others.packages, started_at=NOW + DAY_S, version=1)
    others.packages.append("p", [("k", Acknowledged())])
    assert not stores.packages.forget(make_head(earlier, 1))
    assert not stores.packages.save(make_head(earlier, 2), NOW, make_results(1))
    assert others.packages.load("p") == make_head(later, 1)
    assert others.packages.spec("p") == later
    assert [item.key for item in inbox(others.packages)] == ["k"]
    assert others.packages.pages("p", 0, 9, 10**6) == []


def test_a_process_that_knew_an_earlier_package_with_the_same_id_reads_and_frees_the_later_ones_spec(
    stores: Stores, others: Stores
) -> None:
    earlier = create(stores.packages, version=1)
    assert others.packages.spec("p") == earlier
    assert others.packages.find(["p"])["p"][1] == earlier
    forget(stores.packages)
    later = make_spec(data=InlineData([b"later"] * 7), started_at=NOW + DAY_S, tasks=7)
    stores.packages.create(later, make_head(later, 1))
    assert others.packages.spec("p") == later
    others.packages.find(["p"])
    others.packages.delete_pages("p")
    freed = stores.packages.spec("p")
    assert freed is not None
    assert (freed.start.n, freed.start.data) == (7, InlineData([]))


def test_a_forgotten_package_leaves_nothing(stores: Stores, others: Stores) -> None:
    for name in ("p", "q"):
        create(stores.packages, name, version=1)
    forget(stores.packages)
    assert others.packages.load("p") is None
    assert others.packages.spec("p") is None
    assert not stores.packages.save(make_head(make_spec(), 2), 0.0)
    assert others.packages.load("q") is not None


def test_heads_come_in_the_order_of_the_ids(stores: Stores, others: Stores) -> None:
    for number in range(130):  # more than one call of a service carries
        create(stores.packages, f"p{number}", version=1)
    wanted = [f"p{number}" for number in reversed(range(130))]
    found = others.packages.heads([*wanted[:60], "never was", *wanted[60:]])
    assert [head.package_id for head in found] == wanted
    assert found[0] == stores.packages.load(wanted[0])
    assert others.packages.heads([]) == []


def test_a_head_that_is_named_twice_is_found(stores: Stores) -> None:
    create(stores.packages, version=1)
    assert {head.package_id for head in stores.packages.heads(["p", "p"])} == {"p"}
