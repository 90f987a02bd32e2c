"""An error of one package or account, of whatever kind, does not hold up the others of a request."""

from collections.abc import Callable
from typing import Any

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.isolation import each, gathered
from cloudpar_master.services.steps import finish
from cloudpar_protocol.errors import Unavailable
from support.watched_world import WatchedWorld
from support.world import POLICY, World, all_results, publication

ERRORS = [OSError("x"), KeyError("x"), Unavailable("x", 1.0)]


def fail_for(world: WatchedWorld, port: str, name: str, broken: str, error: Exception) -> None:
    """Let a call of a port fail that names a package or an account, alone or among others."""
    done: Callable[..., Any] = getattr(world.ports[port]._port, name)

    def call(named: Any, *more: Any) -> Any:
        if named == broken or (isinstance(named, list) and broken in named):
            raise error
        return done(named, *more)

    world.ports[port].instead[name] = call


def take_all_waiting(watched: WatchedWorld) -> None:
    """Lease the chunks in the queue, so that the next retrieval has more chunks cut."""
    while watched.backend.queue.waiting():
        watched.retrieve()


@pytest.fixture
def watched(world: World) -> WatchedWorld:
    return WatchedWorld(world)


def test_the_first_error_is_raised_after_all_items_had_their_turn() -> None:
    seen: list[int] = []

    def act(item: int) -> None:
        seen.append(item)
        if item in (1, 2):
            raise OSError(item)

    with pytest.raises(OSError, match="1"):
        finish(each(range(4), act))
    assert seen == [0, 1, 2, 3]


def test_what_was_got_and_the_errors_are_known_by_key() -> None:
    found, failures = gathered(["1", "x", "1", "2"], int)
    assert found == {"1": 1, "2": 2}
    assert list(failures) == ["x"]
    assert isinstance(failures["x"], ValueError)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_beat_extends_the_leases_of_packages_that_can_be_read(
    watched: WatchedWorld, ann: AccountRecord, bob: AccountRecord, error: Exception
) -> None:
    broken, good = watched.start(ann, 5), watched.start(bob, 5)
    leases = {lease.package_id: lease for lease in watched.retrieve_all()}
    fail_for(watched, "packages", "load", broken, error)
    watched.clock.move(0.9 * POLICY.lease_s)
    (view,) = watched.extend(leases[broken], leases[good])
    assert (view.lease_id, view.state) == (leases[good].lease_id, "wanted")
    watched.clock.move(0.9 * POLICY.lease_s)
    assert {lease.package_id for lease in watched.retrieve_all()} == {broken}
    with pytest.raises(type(error)):
        watched.extend(leases[broken])


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_account_that_cannot_be_read_stops_no_task(
    watched: WatchedWorld, ann: AccountRecord, bob: AccountRecord, error: Exception
) -> None:
    broken, good = watched.start(ann, 5), watched.start(bob, 5)
    fail_for(watched, "accounts", "free_us", ann.account_id, error)
    leases = {lease.package_id: lease for lease in watched.retrieve_all()}
    assert leases.keys() == {broken, good}
    views = watched.extend(leases[broken], leases[good])
    assert [view.state for view in views] == ["wanted", "wanted"]
    assert views[0].budget_us == POLICY.slice_us + watched.head(broken).quota.reserved_us
    assert views[1].budget_us > views[0].budget_us


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_retrieval_brings_the_chunks_of_packages_that_can_be_read(
    watched: WatchedWorld, ann: AccountRecord, bob: AccountRecord, error: Exception
) -> None:
    broken, good = watched.start(ann, 5), watched.start(bob, 5)
    fail_for(watched, "packages", "find", broken, error)
    assert {lease.package_id for lease in watched.retrieve()} == {good}
    watched.clock.move(POLICY.lease_s + 1)
    with pytest.raises(type(error)):
        watched.retrieve(chunks=1)
    watched.ports["packages"].instead.clear()
    watched.clock.move(POLICY.lease_s + 1)
    assert broken in {lease.package_id for lease in watched.retrieve_all()}


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_idle_workers_get_chunks_of_a_package_behind_one_that_cannot_be_folded(
    watched: WatchedWorld, ann: AccountRecord, bob: AccountRecord, error: Exception
) -> None:
    broken, good = watched.start(ann, 1_000), watched.start(bob, 1_000)
    take_all_waiting(watched)
    fail_for(watched, "packages", "open", broken, error)
    assert {lease.package_id for lease in watched.retrieve()} == {good}


def test_a_retrieval_that_brings_no_chunk_reports_the_error_of_a_package(
    watched: WatchedWorld, ann: AccountRecord
) -> None:
    broken = watched.start(ann, 1_000)
    take_all_waiting(watched)
    fail_for(watched, "packages", "open", broken, OSError("x"))
    with pytest.raises(OSError, match="x"):
        watched.retrieve()


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_await_brings_the_news_of_packages_that_can_be_read(
    watched: WatchedWorld, ann: AccountRecord, error: Exception
) -> None:
    broken, good = watched.start(ann), watched.start(ann)
    fail_for(watched, "packages", "open", broken, error)
    with pytest.raises(type(error)):
        watched.news(ann, broken, good)
    watched.work([lease for lease in watched.retrieve_all() if lease.package_id == good])
    (status,) = watched.news(ann, broken, good).packages
    assert (status.package_id, len(all_results(status))) == (good, 10)


def test_a_publication_is_answered_although_the_next_closed_package_cannot_be_read(
    watched: WatchedWorld, ann: AccountRecord
) -> None:
    package_id = watched.start(ann, 1)
    lease = watched.lease()

    def unavailable(*_: object) -> None:
        raise Unavailable("x", 1.0)

    watched.ports["packages"].instead["uncut"] = unavailable
    (view,) = watched.publish(publication(lease)).leases
    assert (view.state, watched.head(package_id).life.state) == ("finished", "completed")
