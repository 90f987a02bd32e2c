"""Packages that wait for compute time cost the master little, however many there are."""

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from cloudpar_master.core.fold.quota import REQUESTS_PER_S
from cloudpar_master.core.head import Head, Quota
from cloudpar_master.core.quota import FIRST_SLICE_US
from cloudpar_master.ports import AccountRecord, PackageStore
from cloudpar_master.services.effect_runner import EffectRunner
from cloudpar_master.services.timer import PACKAGES
from support.world import POLICY, World, publication

PACKAGES_OF_ONE, SECONDS = 200, 60


class CountingStore:
    """A package store that counts how often all heads of an account are read."""

    def __init__(self, store: PackageStore) -> None:
        self._store = store
        self.reads = 0

    def unsettled(self, account_id: str) -> Iterable[Head]:
        self.reads += 1
        return self._store.unsettled(account_id)

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


@pytest.fixture
def store(world: World) -> CountingStore:
    return CountingStore(world.backend.packages)


@pytest.fixture
def watched(world: World, store: CountingStore) -> World:
    return World(world.backend._replace(packages=store), world.clock)  # type: ignore[arg-type]


def folds_in(world: World, seconds: int) -> int:
    """Let time pass, and return how many packages were folded because they were due."""
    folds = 0
    for _ in range(seconds):
        world.clock.move(1)
        while (more := world.timer.fold_due().packages) == PACKAGES:
            folds += more
        folds += more
    return folds


def test_the_waiting_packages_of_an_account_request_compute_time_at_a_bounded_rate(
    watched: World, store: CountingStore
) -> None:
    poor = watched.account("poor", quota_us=10_000_000)
    packages = [watched.start(poor, 1) for _ in range(PACKAGES_OF_ONE)]
    folds_in(watched, 2)
    store.reads = 0
    assert folds_in(watched, SECONDS) <= SECONDS * REQUESTS_PER_S * 1.2
    assert store.reads <= 2 * SECONDS * REQUESTS_PER_S / PACKAGES_OF_ONE
    assert {watched.status(poor, each).state for each in packages} == {"running"}


def test_many_waiting_packages_end_soon_after_the_quota_is_spent(watched: World) -> None:
    poor = watched.account("poor", quota_us=10_000_000)
    packages = [watched.start(poor, 1) for _ in range(PACKAGES_OF_ONE)]
    folds_in(watched, 2)
    for lease in watched.retrieve_all():
        watched.publish(publication(lease, duration_us=10_000_000))
    folds_in(watched, 3 * PACKAGES_OF_ONE // REQUESTS_PER_S)
    states = [watched.status(poor, each) for each in packages]
    assert {each.state for each in states} == {"completed", "failed"}
    assert {each.reason for each in states if each.state == "failed"} == {"quota"}


def test_refused_packages_whose_reserve_is_not_spent_request_compute_time_at_a_bounded_rate(watched: World) -> None:
    poor = watched.account("poor", quota_us=PACKAGES_OF_ONE * FIRST_SLICE_US)
    packages = {watched.start(poor, 2, chunksize=1) for _ in range(PACKAGES_OF_ONE)}
    leases = {lease.package_id: lease for lease in watched.retrieve_all()}
    assert leases.keys() == packages
    for lease in leases.values():
        watched.publish(publication(lease, duration_us=FIRST_SLICE_US * 8 // 10))
    folds_in(watched, 2)
    assert not any(watched.head(each).quota.reserve_spent for each in packages)
    assert folds_in(watched, SECONDS) <= SECONDS * REQUESTS_PER_S * 1.2


def test_idle_executors_pass_over_packages_that_were_refused_compute_time(world: World) -> None:
    poor, ann = world.account("poor", quota_us=FIRST_SLICE_US), world.account("ann")
    holder = world.start(poor, 1)
    world.clock.move(0.001)
    refused = [world.start(poor, 1) for _ in range(PACKAGES_OF_ONE - 1)]
    assert [lease.package_id for lease in world.retrieve()] == [holder]
    world.clock.move(0.001)
    package_id = world.start(ann, 1_000, chunksize=1)
    first = world.retrieve()
    assert {lease.package_id for lease in first} == {package_id}
    assert len(first) == POLICY.first_window
    versions = [world.head(each).version for each in refused]
    assert {lease.package_id for lease in world.retrieve()} == {package_id}
    assert [world.head(each).version for each in refused] == versions


def test_the_check_for_spent_time_stops_at_the_first_package_that_has_some(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An account may have thousands of packages that have ended and are not settled yet."""
    spent, *_ = [world.head(world.start(ann, tasks=1)) for _ in range(5)]
    unsettled, read = world.backend.packages.unsettled, list[str]()

    def noted(account_id: str) -> Iterable[Head]:
        for head in unsettled(account_id):
            read.append(head.package_id)
            yield head

    monkeypatch.setattr(world.backend.packages, "unsettled", noted)
    effects = EffectRunner(world.backend)
    assert effects._all_spent(replace(spent, quota=Quota())) == (False, 5)
    assert len(read) == 1
