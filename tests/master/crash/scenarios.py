"""Small runs of everything that a master does, to be repeated with a crash at each of their port calls."""

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from cloudpar_master.services import folding
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks, PrepareUploads, StartTasks, Upload
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode, TaskData
from master.stores import Factory, SetClock

from .actors import Client, Worker, value
from .crashing import Fuse
from .rival import TRIES
from .world import POLICY, TURNS, World

TASKS = 6
PLENTY_US = 10**12


class Scenario(NamedTuple):
    """What is special about a run.

    Attributes:
        more_bytes: Results are larger by so much.
        meanwhile: What somebody does once the client has its first result.
        rival: Another master folds too, and wins most races.
        state: How the package ends.
    """

    name: str
    state: str = "completed"
    granted_us: int = PLENTY_US
    mortal: bool = False
    gives_back: bool = False
    deadly: int | None = None
    blobs: bool = False
    more_bytes: int = 0
    rival: bool = False
    meanwhile: Callable[[World, Client], None] | None = None


class Run:
    """A scenario from its start to the end of its package."""

    def __init__(self, world: World, scenario: Scenario) -> None:
        self.world = world
        self.scenario = scenario
        self.used_us: dict[tuple[str, int], int] = {}
        self.workers = [self._worker("w1", first=True), self._worker("w2", first=False)]
        code, data = self._payloads()
        start = StartTasks(
            idempotency_key=self.world.name, n=TASKS, code=code, data=data, call="value", python="3.11", chunksize=2
        )
        self.client = Client(world, start)

    def _worker(self, name: str, *, first: bool) -> Worker:
        scenario = self.scenario
        return Worker(
            self.world, name, self.used_us,
            mortal=scenario.mortal, gives_back=scenario.gives_back and first, deadly=scenario.deadly,
            large=lambda index: scenario.blobs and index % 2 == 0, more_bytes=scenario.more_bytes,
        )  # fmt: skip

    def _payloads(self) -> tuple[TaskCode, TaskData]:
        text = b"code"
        code_hash = hashlib.sha256(text).hexdigest()
        if not self.scenario.blobs:
            return TaskCode(code_hash, text), InlineData([b"data"] * TASKS)
        table = b"".join((4 * index).to_bytes(8, "little") for index in range(TASKS + 1))
        body = b"data" * TASKS + table
        uploads = [
            Upload(kind="code", size=len(text), crc32=zlib.crc32(text), hash=code_hash),
            Upload(kind="data", size=len(body), crc32=zlib.crc32(body)),
        ]
        code, data = self.world.ask("user", routes.PREPARE_UPLOADS, PrepareUploads(uploads=uploads)).uploads
        for prepared, payload in ((code, text), (data, body)):
            assert prepared.link is not None
            assert self.world.stores.transfer(prepared.link, payload).status == 200
        return TaskCode(code_hash, blob=BlobRef(code.key, len(text))), BlobData(BlobRef(data.key, len(body)))

    def to_the_end(self) -> None:
        """Every caller does its steps, turn by turn, until the charge is final; then the client acknowledges."""
        meanwhile = self.scenario.meanwhile
        for _ in range(TURNS):
            for worker in self.workers:
                worker.step()
            self.world.pass_turn()
            status = self.client.read()
            if meanwhile and self.client.results:
                meanwhile(self.world, self.client)
                meanwhile = None
            if status.state != "running" and status.settled and not status.more:
                break
        else:
            raise AssertionError(f"it stands still: {self.client.status}")
        self.ended = self.client.status
        self.client.acknowledge()
        assert self.client.read().state == "expired"

    def check(self) -> None:
        """The outcome is right, whatever crashed."""
        account = self.world.account()
        charged_us = self.ended.progress.charged_us
        assert (self.ended.state, account.reserved_us, account.spent_us) == (self.scenario.state, 0, charged_us)
        for index, result in self.client.results.items():
            assert result.outcome == ("lost" if index == self.scenario.deadly else "ok")
            if result.outcome == "ok":
                assert self.client.values[index] == value(index, self.scenario.more_bytes)
        committed_us = sum(result.duration_us for result in self.client.results.values())
        if self.ended.state in {"completed", "error"}:
            self._check_all_there()
        if not self.ended.cancelled and self.ended.state in {"completed", "error", "failed"}:
            assert account.spent_us == min(committed_us, self.scenario.granted_us)
            assert self.ended.state != "failed" or account.spent_us == self.scenario.granted_us
        else:
            self._check_stopped_tasks(committed_us, account.spent_us)
        self._check_nothing_is_left()

    def _check_all_there(self) -> None:
        cancelled = {index for start, end in self.ended.cancelled for index in range(start, end)}
        assert set(self.client.results) | cancelled == set(range(TASKS))
        assert not set(self.client.results) & cancelled

    def _check_stopped_tasks(self, committed_us: int, spent_us: int) -> None:
        """What was stopped is charged too, each once: here no task is run twice, and all workers say what they used."""
        indices = [index for _, index in self.used_us]
        assert len(set(indices)) == len(indices)
        assert committed_us <= spent_us == sum(self.used_us.values())

    def _check_nothing_is_left(self) -> None:
        """Whatever still lies in the queue leads to nothing, and goes."""
        ran = sum(len(worker.ran) for worker in self.workers)
        for _ in range(TURNS):
            if all(not worker.jobs for worker in self.workers) and self._queue_is_empty():
                break
            for worker in self.workers:
                worker.step()
            self.world.pass_turn()
        else:
            raise AssertionError("messages lie about")
        assert sum(len(worker.ran) for worker in self.workers) == ran
        assert self.world.account().spent_us == self.ended.progress.charged_us

    def _queue_is_empty(self) -> bool:
        """Nothing surfaces even after every lease has run out."""
        queue, clock = self.world.stores.queue, self.world.clock
        clock.move(2 * POLICY.lease_s)
        return queue.waiting() == 0 and not queue.dead(1)


def run(
    scenario: Scenario, factory: Factory, folder: Path, clock: SetClock, *, name: str, fuse: Fuse | None = None
) -> World:
    """Run it, with a crash or without, and check the outcome. Runs on the same data need different names."""
    granted_us, rival = scenario.granted_us, scenario.rival
    with (
        pytest.MonkeyPatch.context() as patch,
        World(factory, folder, clock, name, fuse or Fuse(), granted_us=granted_us, rival=rival) as world,
    ):
        if rival:
            patch.setattr(folding, "TRIES", TRIES)
        ran = Run(world, scenario)
        ran.to_the_end()
        ran.check()
        return world


def cancel_all(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id))


def cancel_some(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id, ranges=[(1, 3), (5, 6)]))


def cancel_queued(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id, only_queued=True))


SCENARIOS = [
    Scenario("payloads in blobs", blobs=True),
    Scenario("large results", more_bytes=20_000),
    Scenario("workers die with the master", mortal=True),
    Scenario("gives back", gives_back=True),
    Scenario("others fold too", rival=True, gives_back=True),
    Scenario("a deadly task", "error", deadly=3),
    Scenario("quota", "failed", granted_us=2_500),
    Scenario("cancel all", "cancelled", meanwhile=cancel_all),
    Scenario("cancel some", meanwhile=cancel_some),
    Scenario("cancel queued", meanwhile=cancel_queued),
]
