"""Every queue message is delivered three times, in any order, and so is every publication."""

import random
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from aws.differences import SOUND
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import Fit, Message, Sending, TaskQueue
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.worker_messages import Lease, Publication
from support.clock import SetClock
from support.scale import Scale
from support.stores import Factory
from support.world import HOUR_US, World, master, publication

TIMES = 3
CHUNK = 5
AHEAD = 300
"""How many publications may be under way at once, in any order."""

TOGETHER = 30
"""How many of them one request carries at most."""

POLICY = Policy(lease_s=3600.0, first_window=32)


class Thrice:
    """A queue that delivers each message three times, as three messages: some soon, some later, in any order.

    Attributes:
        sent: The bodies that the master sent, with their counts.
        received: The bodies that came, with their counts.
    """

    def __init__(self, queue: TaskQueue, chance: random.Random) -> None:
        self._queue = queue
        self._chance = chance
        self._late: list[Sending] = []
        self.sent = Counter[str]()
        self.received = Counter[str]()

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port."""
        copies = [each._replace(group=f"{each.group}#{time}") for time in range(TIMES) for each in messages]
        soon, more = copies[: len(messages)], [*self._late, *copies[len(messages) :]]
        self._chance.shuffle(more)
        self._late = more[: len(more) // 2]
        soon += more[len(more) // 2 :]
        self._chance.shuffle(soon)
        self.sent.update(each.body for each in messages)
        return [all(self._queue.send(soon))] * len(messages)

    def receive(
        self,
        limit: int,
        visibility_s: float,
        attempt_id: str,
        besides: Collection[str] = (),
        fit: Fit = ANY,
        *,
        stay: Stay = NO_STAY,
        again: bool = False,
        express: bool = True,
        sent: bool = False,
    ) -> list[Message]:
        """See the port."""
        messages = self._queue.receive(
            limit,
            visibility_s,
            attempt_id,
            besides,
            fit,
            stay=stay,
            again=again,
            express=express,
            sent=sent,
        )
        self.received.update(message.body for message in messages)
        return messages

    def send_late(self) -> bool:
        """Send the messages that come last. Returns whether there were any."""
        late, self._late = self._late, []
        return bool(late) and all(self._queue.send(late))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)


class Run:
    """Runs one package with a worker that runs every lease and publishes everything three times, in any order."""

    def __init__(self, world: World, seed: int) -> None:
        self.chance = random.Random(seed)
        self.queue = Thrice(world.backend.queue, self.chance)
        self.world = World(world.backend._replace(queue=cast("TaskQueue", self.queue)), world.clock)
        self.deliveries: list[Publication] = []
        self.made = 0
        self.delivered = Counter[tuple[str, int]]()
        """How many times each publication came, by its lease and its number."""
        self.executions = 0

    def work(self) -> None:
        """Work until nothing more comes."""
        while True:
            if len(self.deliveries) > AHEAD or not self._retrieve():
                if self.deliveries:
                    self._deliver()
                elif not self.queue.send_late():
                    return

    def _retrieve(self) -> bool:
        leases = self.world.retrieve(chunks=self.chance.randint(1, 4))
        for lease in leases:
            for made in self._parts(lease):
                self.made += 1
                self.deliveries += [made] * TIMES
        return bool(leases)

    def _parts(self, lease: Lease) -> Iterator[Publication]:
        """Yield a lease's publications. No two executions of a task take the same time."""
        left = [index for start, end in lease.ranges for index in range(start, end)]
        for seq in count():
            now = self.chance.randint(1, len(left))
            results = [TaskResult(index, "ok", 1_000 + self.executions + index, data=b"value") for index in left[:now]]
            self.executions += now
            left = left[now:]
            yield replace(publication(lease, [], seq=seq, closes=not left), results=results)
            if not left:
                return

    def _deliver(self) -> None:
        """Publish some together, as workers do. Some of them may be equal."""
        self.chance.shuffle(self.deliveries)
        together = self.chance.randint(1, TOGETHER)
        self.world.publish(*self.deliveries[:together])
        self.delivered.update((each.lease_id, each.seq) for each in self.deliveries[:together])
        del self.deliveries[:together]


@pytest.mark.parametrize("factory", SOUND, ids=lambda factory: str(factory.__name__))
def test_g04_a_task_is_committed_and_charged_once_although_everything_comes_three_times(
    factory: Factory, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    tasks, clock = scale(100, 5_000), SetClock()
    with master(tmp_path, POLICY, clock, factory) as base:
        run = Run(base, seed=4)
        world, ann = run.world, run.world.account(quota_us=HOUR_US)
        package_id = world.start(ann, tasks, chunksize=CHUNK)
        run.work()
        status = world.status(ann, package_id)
        results = list(status.results)
        while status.more:
            status = world.status(ann, package_id, status.cursor)
            results += status.results
        assert sorted(result.index for result in results) == list(range(tasks))
        charged_us = sum(result.duration_us for result in results)
        account = world.record(ann.account_id)
        assert (status.state, status.settled, status.progress.charged_us) == ("completed", True, charged_us)
        assert (account.spent_us, account.reserved_us) == (charged_us, 0)
        assert run.executions > tasks, "some tasks ran more than once"
        assert world.retrieve() == []
        assert world.backend.queue.waiting() == 0
    sent, received, delivered = run.queue.sent, run.queue.received, run.delivered
    assert received == {body: TIMES * number for body, number in sent.items()}
    assert (set(delivered.values()), len(delivered)) == ({TIMES}, run.made)
    reached(
        f"{factory.__name__}: {sent.total():,} messages came {received.total():,} times, and {len(delivered):,}"
        f" publications {delivered.total():,} times,"
        f" {run.executions:,} executions of {tasks:,} tasks: 1 commit and 1 charge each"
    )
