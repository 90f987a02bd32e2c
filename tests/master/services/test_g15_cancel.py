"""A package that is cancelled at the moment when it completes ends in one way, and stays so."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from aws.differences import SOUND
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.client_messages import CancelTasksReply
from master.races import LONGEST_S, patiently
from support.clock import SetClock
from support.scale import Scale
from support.stores import Factory
from support.world import World, all_results, master, publication

PLENTY_US = 10**15
TASKS = 2
POLICY = Policy(lease_s=3600.0, slice_us=10_000)


class Races:
    """Two processes: one finishes packages, and the other one cancels them at the same time.

    The winner of a race must read something before the next one, so that the races stay close.
    """

    def __init__(self, factory: Factory, folder: Path, clock: SetClock) -> None:
        self._open = partial(master, folder, POLICY, clock, factory)
        self._clock = clock
        self._line = Barrier(2, timeout=LONGEST_S)
        self._lead, self._step = 0, 1
        self.ends: Counter[str] = Counter()

    def run(self, races: int) -> None:
        with self._open(), ThreadPoolExecutor(2) as threads:
            package_ids: list[str] = []
            replies: list[CancelTasksReply] = []
            both = [
                threads.submit(self._work, races, package_ids),
                threads.submit(self._cancel, races, package_ids, replies),
            ]
            for each in as_completed(both):
                if each.exception() is not None:
                    self._line.abort()
                each.result()
        self._check(package_ids, replies)

    def _work(self, races: int, package_ids: list[str]) -> None:
        with self._open() as world:
            account = world.account(quota_us=PLENTY_US)
            for race in range(races):
                package_ids.append(world.start(account, TASKS, idempotency_key=f"{race}"))
                lease = world.lease()
                assert lease.package_id == package_ids[-1]
                self._meet(world, -self._lead)
                patiently(partial(world.publish, publication(lease, duration_us=1_000 + race)))
                self._line.wait()
                self._line.wait()

    def _cancel(self, races: int, package_ids: list[str], replies: list[CancelTasksReply]) -> None:
        with self._open() as world:
            for race in range(races):
                self._meet(world, self._lead)
                replies.append(patiently(partial(world.cancel, None, package_ids[race])))
                self._line.wait()
                self._adjust(+1 if replies[-1].state == "cancelled" else -1)
                self._line.wait()

    def _adjust(self, sign: int) -> None:
        self._step = self._step * 2 if sign * self._step > 0 else sign
        self._lead += self._step

    def _meet(self, world: World, reads: int) -> None:
        self._line.wait()
        for _ in range(reads):
            world.backend.packages.load("unknown")

    def _check(self, package_ids: list[str], replies: list[CancelTasksReply]) -> None:
        with self._open() as world:
            account = world.record(world.account().account_id)
            spent_us = 0
            for race, (package_id, reply) in enumerate(zip(package_ids, replies, strict=True)):
                status = world.status(account, package_id)
                self.ends[status.state] += 1
                assert status.state == reply.state
                assert status.settled
                done = status.state == "completed"
                assert (all_results(status), reply.cancelled) == (
                    (list(range(TASKS)), []) if done else ([], [(0, TASKS)])
                )
                assert status.progress.charged_us == TASKS * (1_000 + race), "done or stopped, its time is charged once"
                spent_us += status.progress.charged_us
            account = world.record(account.account_id)
            assert (account.spent_us, account.reserved_us) == (spent_us, 0)
            self._clock.move(60.0)
            world.timer.tick()
            after = Counter(world.status(account, package_id).state for package_id in package_ids)
            assert after == self.ends
            assert world.retrieve() == []


@pytest.mark.parametrize("factory", SOUND, ids=lambda factory: str(factory.__name__))
def test_g15_a_package_is_either_cancelled_or_completed(
    factory: Factory, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    races = Races(factory, tmp_path, SetClock())
    count = scale(20, 1_000)
    races.run(count)
    assert set(races.ends) == {"completed", "cancelled"}
    ends = " and ".join(f"{number:,} {state}" for state, number in sorted(races.ends.items()))
    reached(f"{factory.__name__}: {count:,} races: {ends}, 1 terminal state each")
