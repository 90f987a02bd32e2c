"""PackageStore: which packages are due, have uncut tasks, or belong to an account."""

from msgspec.structs import replace

from cloudpar_master.core.head import Head, Spec
from cloudpar_master.ports import Running
from support.clock import NOW
from support.heads import altered
from support.packages import forget, make_head, make_spec
from support.stores import Stores


def create(stores: Stores, package_id: str, started_at: float = NOW, account_id: str = "a") -> tuple[Spec, Head]:
    spec = replace(make_spec(package_id, started_at=started_at), account_id=account_id)
    head = make_head(spec)
    stores.packages.create(spec, head)
    return spec, head


def saved(stores: Stores, spec: Spec, version: int, due_at: float, **changes: object) -> None:
    head = make_head(spec, version)
    assert stores.packages.save(altered(head, **changes), due_at)


def test_a_new_package_is_due_at_once(stores: Stores, others: Stores) -> None:
    """The master that created it may die before it sends any chunk."""
    create(stores, "p", started_at=NOW)
    assert others.packages.due(NOW, 10) == ["p"]


def test_a_package_is_due_at_the_time_that_was_saved_last(stores: Stores, others: Stores) -> None:
    for number in range(4):
        spec, _ = create(stores, f"p{number}")
        saved(stores, spec, 1, NOW + 10.0 * number)
    assert sorted(others.packages.due(NOW, 10)) == ["p0"]
    assert sorted(others.packages.due(NOW + 20.0, 10)) == ["p0", "p1", "p2"]
    saved(stores, make_spec("p0"), 2, NOW + 99.0)
    assert sorted(others.packages.due(NOW + 30.0, 10)) == ["p1", "p2", "p3"]


def test_the_packages_that_are_due_for_longest_come_first(stores: Stores) -> None:
    for number, due_at in enumerate((30.0, 10.0, 20.0)):
        spec, _ = create(stores, f"p{number}")
        saved(stores, spec, 1, NOW + due_at)
    assert stores.packages.due(NOW + 99.0, 2) == ["p1", "p2"]


def test_a_save_that_loses_its_race_does_not_change_the_registry(stores: Stores) -> None:
    spec, _ = create(stores, "p")
    saved(stores, spec, 1, NOW + 10.0)
    assert not stores.packages.save(make_head(spec, 1), NOW)
    assert stores.packages.due(NOW + 5.0, 10) == []


def test_a_forgotten_package_is_in_no_registry(stores: Stores) -> None:
    create(stores, "p")
    forget(stores.packages)
    assert stores.packages.due(NOW * 2, 10) == []
    assert stores.packages.uncut() == []
    assert list(stores.packages.of_account(None, 10)) == []
    assert stores.packages.running("a") == Running(0, 0, 0)
    assert list(stores.packages.unsettled("a")) == []
    assert stores.packages.stored_bytes("a") == 0


def test_what_an_accounts_packages_store_is_added_up_until_they_are_forgotten(stores: Stores, others: Stores) -> None:
    (spec, first), (_, second) = create(stores, "p"), create(stores, "q")
    create(stores, "other", account_id="b")
    assert others.packages.stored_bytes("a") == first.counted_bytes + second.counted_bytes
    saved(stores, spec, 1, NOW, stored_bytes=first.life.stored_bytes + 1_000)
    assert others.packages.stored_bytes("a") == first.counted_bytes + 1_000 + second.counted_bytes
    forget(stores.packages, "q")
    assert others.packages.stored_bytes("a") == first.counted_bytes + 1_000


def test_packages_with_uncut_tasks_come_oldest_first(stores: Stores, others: Stores) -> None:
    for package_id, age_s in (("p1", 5.0), ("p2", 9.0), ("p3", 7.0)):
        create(stores, package_id, started_at=NOW - age_s)
    assert others.packages.uncut() == ["p2", "p3", "p1"]


def test_a_package_is_uncut_while_it_has_tasks_in_no_chunk(stores: Stores) -> None:
    spec, _ = create(stores, "p")
    saved(stores, spec, 1, NOW, cursor=3)
    assert stores.packages.uncut() == ["p"]
    saved(stores, spec, 2, NOW, cursor=4)
    assert stores.packages.uncut() == []


def test_a_package_that_waits_for_compute_time_is_not_uncut_until_it_is_saved_again(stores: Stores) -> None:
    """Otherwise idle workers would read the heads of all packages that wait for their account's quota."""
    spec, _ = create(stores, "p")
    saved(stores, spec, 1, NOW, ask_again_at=NOW + 1.0)
    assert stores.packages.uncut() == []
    saved(stores, spec, 2, NOW, ask_again_at=NOW + 1.0, reserved_us=1)
    assert stores.packages.uncut() == ["p"]
    saved(stores, spec, 3, NOW, ask_again_at=0.0)
    assert stores.packages.uncut() == ["p"]


def test_an_ended_package_has_nothing_uncut(stores: Stores) -> None:
    spec, _ = create(stores, "p")
    saved(stores, spec, 1, NOW, state="cancelled")
    assert stores.packages.uncut() == []


def test_the_running_packages_of_an_account_are_counted(stores: Stores, others: Stores) -> None:
    for package_id, account_id in (("p1", "a"), ("p2", "b"), ("p3", "a"), ("p4", "a")):
        create(stores, package_id, account_id=account_id)
    assert others.packages.running("a") == Running(3, 12, 30)
    saved(stores, make_spec("p3"), 1, NOW, state="failed")
    assert others.packages.running("a") == Running(2, 8, 20)
    assert others.packages.running("unknown") == Running(0, 0, 0)


def test_the_running_and_the_unsettled_packages_of_an_account_are_as_last_saved(stores: Stores, others: Stores) -> None:
    for package_id, account_id in (("p1", "a"), ("p2", "b"), ("p3", "a"), ("p4", "a")):
        create(stores, package_id, account_id=account_id)
    saved(stores, make_spec("p3"), 1, NOW, state="cancelled")
    saved(stores, make_spec("p4"), 1, NOW, state="cancelled", settled=True)
    assert {head.package_id: head.life.state for head in others.packages.unsettled("a")} == {
        "p1": "running",
        "p3": "cancelled",
    }
    assert list(others.packages.unsettled("unknown")) == []
    assert [head.package_id for head in others.packages.running_heads("a")] == ["p1"]
    assert list(others.packages.running_heads("unknown")) == []


def test_the_packages_at_work_are_the_running_ones_of_all_accounts(stores: Stores, others: Stores) -> None:
    for package_id, account_id, age_s in (("p1", "a", 1.0), ("p2", "b", 9.0), ("p3", "a", 5.0), ("p4", "c", 7.0)):
        create(stores, package_id, NOW - age_s, account_id)
    saved(stores, make_spec("p3", started_at=NOW - 5.0), 1, NOW, state="cancelled", settled=True)
    heads, more = others.packages.at_work(10)
    assert ([head.package_id for head in heads], more) == (["p2", "p4", "p1"], 0)
    heads, more = others.packages.at_work(2)
    assert ([head.package_id for head in heads], more) == (["p2", "p4"], 1)


def test_accounts_take_turns_among_the_packages_at_work(stores: Stores, others: Stores) -> None:
    for number, account_id in enumerate("aaabcb", start=1):
        create(stores, f"p{number}", NOW + number, account_id)
    heads, more = others.packages.at_work(4)
    assert ([head.package_id for head in heads], more) == (["p1", "p4", "p5", "p2"], 2)
    heads, more = others.packages.at_work(10)
    assert ([head.package_id for head in heads], more) == (["p1", "p4", "p5", "p2", "p6", "p3"], 0)


def test_the_packages_of_an_account_come_newest_first(stores: Stores, others: Stores) -> None:
    heads = {}
    for package_id, account_id, age_s in (("p1", "a", 5.0), ("p2", "b", 3.0), ("p3", "a", 1.0), ("p4", "a", 9.0)):
        heads[package_id] = create(stores, package_id, NOW - age_s, account_id)[1]
    assert list(others.packages.of_account("a", 10)) == [heads["p3"], heads["p1"], heads["p4"]]
    assert list(others.packages.of_account("a", 2)) == [heads["p3"], heads["p1"]]
    assert list(others.packages.of_account(None, 3)) == [heads["p3"], heads["p2"], heads["p1"]]
    assert list(others.packages.of_account("unknown", 10)) == []


def test_the_packages_of_an_account_are_as_last_saved(stores: Stores, others: Stores) -> None:
    spec, _ = create(stores, "p")
    saved(stores, spec, 1, NOW, name="renamed")
    assert [head.name for head in list(others.packages.of_account("a", 10))] == ["renamed"]
