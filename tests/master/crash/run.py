import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable
from random import Random

from cloudpar_protocol.client_messages import PackageStatus, StartTasks, Upload
from cloudpar_protocol.payloads import BlobData, InlineData, TaskCode, TaskData

from .client import Client, seal_key, sealed, upload
from .scenario import Scenario
from .worker import Worker, value
from .world import TIMER_S, TURNS, World

TASKS = 6


class Run:
    """Runs a scenario from its start to the end of its package."""

    ended: PackageStatus

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        self.used_us: dict[tuple[str, int], int] = {}
        self.workers = [self.worker("w1", first=True), self.worker("w2", first=False)]
        self.client = self.start(world.name)
        self._meanwhile = scenario.meanwhile
        if scenario.at_once:
            scenario.at_once(world, self.client)

    def worker(self, name: str, *, first: bool) -> Worker:
        """Make a worker."""
        return Worker(self.world, name, self.scenario, self.used_us, first=first)

    def start(self, idempotency_key: str) -> Client:
        """Start a package, and return its client."""
        code, data = self._payloads()
        start = StartTasks(
            idempotency_key=idempotency_key, n=TASKS, code=code, data=data, call="value", python="3.11", chunksize=2
        )
        return Client(self.world, *sealed(self.world, start)) if self.scenario.sealed else Client(self.world, start)

    def _payloads(self) -> tuple[TaskCode, TaskData]:
        text = b"code" + Random(0).randbytes(self.scenario.more_bytes)
        code_hash = hashlib.sha256(text).hexdigest()
        if not self.scenario.blobs:
            return TaskCode(code_hash, text), InlineData([b"data"] * TASKS)
        table = b"".join((4 * index).to_bytes(8, "little") for index in range(TASKS + 1))
        body = b"data" * TASKS + table
        wanted = [
            (Upload(kind="code", size=len(text), crc32=zlib.crc32(text), hash=code_hash), text),
            (Upload(kind="data", size=len(body), crc32=zlib.crc32(body), parts_crc32=[zlib.crc32(body)]), body),
        ]
        code, data = upload(self.world, wanted)
        return TaskCode(code_hash, blob=code), BlobData(data)

    def turns(self, done: Callable[[], bool]) -> None:
        """Let workers and master do their steps, turn by turn, until a condition holds."""
        for _ in range(TURNS):
            for worker in self.workers:
                worker.step()
            self.world.pass_turn()
            if done():
                return
        raise AssertionError(f"no progress: {self.client.status}")

    def wait(self, done: Callable[[], bool]) -> None:
        """Let only the timer work, until a condition holds."""
        for _ in range(TURNS):
            if done():
                return
            self.world.pass_turn(TIMER_S)
        raise AssertionError(f"no progress by the timer alone: {self.client.status}")

    def to_the_end(self) -> None:
        """Run until the charge is final. Then the client acknowledges, or the package expires."""
        self.turns(self._is_settled)
        self.ended = self.client.status
        if self.scenario.acknowledged:
            self.client.acknowledge()
        else:
            self.wait(lambda: self.state(self.client) == "expired")
        assert self.client.read().state == "expired"

    def _is_settled(self) -> bool:
        status = self.client.read()
        if self._meanwhile and self.client.results:
            self._meanwhile(self.world, self.client)
            self._meanwhile = None
        return status.state != "running" and status.settled and not status.more

    def state(self, client: Client) -> str | None:
        """Return the stored state of a client's package. An await would fold it."""
        head = self.world.stores.packages.load(client.package_id)
        return None if head is None else head.life.state

    def check(self) -> None:
        """Check that the outcome is right, wherever the master crashed."""
        account, scenario, ended = self.world.account(), self.scenario, self.ended
        charged_us = ended.progress.charged_us
        assert (ended.state, account.reserved_us, account.spent_us) == (scenario.state, 0, charged_us)
        assert scenario.reason in {None, ended.reason}
        for index, result in self.client.results.items():
            assert result.outcome == ("lost" if index == scenario.deadly else "ok")
            if result.outcome == "ok":
                assert self.client.values[index] == value(index, scenario.more_bytes)
        committed_us = sum(result.duration_us for result in self.client.results.values())
        if ended.state in {"completed", "error"}:
            self._check_all_tasks_are_done()
        if ended.cancelled or scenario.stops_tasks:
            self._check_stopped_tasks(committed_us, account.spent_us)
        else:
            assert account.spent_us == min(committed_us, scenario.granted_us)
            assert ended.reason != "quota" or account.spent_us == scenario.granted_us
        if scenario.sealed:
            assert set.union(*(worker.seal_keys for worker in self.workers)) == {seal_key(self.world)}
        self.check_nothing_is_left()
        if scenario.gives_back:
            self._check_workers_leave()
        if scenario.forgotten:
            self._check_it_is_forgotten()

    def _check_all_tasks_are_done(self) -> None:
        cancelled = {index for start, end in self.ended.cancelled for index in range(start, end)}
        assert set(self.client.results) | cancelled == set(range(TASKS))
        assert not set(self.client.results) & cancelled

    def _check_stopped_tasks(self, committed_us: int, spent_us: int) -> None:
        """Check that stopped tasks are charged once. All workers report.

        In runs with one crash, no task runs twice. After several, the rest of a chunk may (ADR 0041); then one of the
        two times counts.
        """
        times = defaultdict[int, list[int]](list)
        for (_, index), used_us in self.used_us.items():
            times[index].append(used_us)
        assert self.world.fuse.breaks_many or all(len(each) == 1 for each in times.values())
        stopped = [each for index, each in times.items() if index not in self.client.results]
        assert sum(map(min, stopped)) <= spent_us - committed_us <= sum(map(max, stopped))

    def check_nothing_is_left(self) -> None:
        """Check that messages that are still in the queue change nothing, and are removed."""
        ran, spent_us = self._ran(), self.world.account().spent_us
        self.turns(lambda: all(not worker.jobs for worker in self.workers) and self._queue_is_empty())
        assert (self._ran(), self.world.account().spent_us) == (ran, spent_us)

    def _check_workers_leave(self) -> None:
        for worker in self.workers:
            worker.leave()
        assert not self.world.stores.registry.workers(0.0, newest=True)

    def _ran(self) -> int:
        return sum(len(worker.ran) for worker in self.workers)

    def _queue_is_empty(self) -> bool:
        """Return whether nothing surfaces after every lease has run out."""
        queue, clock = self.world.stores.queue, self.world.clock
        clock.move(2 * self.scenario.policy.lease_s)
        return queue.waiting() == 0 and not queue.dead(1)

    def _check_it_is_forgotten(self) -> None:
        """Check that the package is forgotten after some time, without a client or worker."""
        self.wait(lambda: self.state(self.client) is None)
        self.check_it_is_gone(self.client)
        assert self.client.finds_nothing()

    def check_it_is_gone(self, client: Client) -> None:
        """Check that nothing is left of a package but what its account remembers."""
        packages, blobs = self.world.restart().packages, self.world.stores.blobs
        assert packages.load(client.package_id) is None
        assert packages.spec(client.package_id) is None
        assert packages.find([client.package_id]) == {}
        assert packages.pages(client.package_id, 0, 10**6, 10**9) == []
        assert list(packages.of_account(self.world.account_id, 1)) == []
        assert packages.running(self.world.account_id).packages == 0
        assert list(packages.unsettled(self.world.account_id)) == []
        assert client.package_id not in {*packages.due(self.world.clock.now() + 10**9, 10**6), *packages.uncut()}
        keys = [result.blob.key for result in client.results.values() if result.blob is not None]
        assert not any(blobs.exists(key) for key in [*keys, *client.uploaded])
