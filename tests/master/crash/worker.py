"""Workers that send the same requests as the real ones, one step a turn.

They are scripts, unlike the workers of the simulation, which run the agent's state machine: a repeated run must make
the same port calls in the same order, so that each call is a crash point with a number.
"""

import random
import zlib
from collections import deque
from typing import Literal

from msgspec.structs import replace

from cloudpar_protocol import routes
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import BlobRef, TaskResult, Unfit
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    Lease,
    LeaseRef,
    LeaseView,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from cloudpar_worker.shell.verifying import SealBroken, seals_of, verify

from .scenario import Scenario
from .world import World

TASK_US = 1_000
"""A task lasts a little longer than this. Each execution has another duration, so that a wrong charge is noticed."""


def value(index: int, more_bytes: int = 0) -> bytes:
    """Return the right result of a task, with more bytes behind it that do not compress."""
    return f"value {index}".encode() + random.Random(index).randbytes(more_bytes)


class Job:
    """A lease that a worker has: the tasks that are left, and how many publications it had."""

    def __init__(self, lease: Lease) -> None:
        self.lease = lease
        self.todo = deque(index for start, end in lease.ranges for index in range(start, end))
        self.running: int | None = None
        self.seq = 0

    @property
    def ref(self) -> LeaseRef:
        """The lease as the master knows it."""
        return LeaseRef(**self.lease.identity())


class Worker:
    """Runs one task a turn and publishes it alone, as its scenario says.

    Attributes:
        first: It alone may give tasks back, and can seal results.
        used_us: The time of every task that a worker published, also of stopped ones, by (lease, index).
        seal_keys: The keys that the leases of sealed packages brought.
    """

    def __init__(
        self, world: World, name: str, scenario: Scenario, used_us: dict[tuple[str, int], int], *, first: bool
    ) -> None:
        self._world = world
        self._name = name
        self._scenario = scenario
        self._used_us = used_us
        self._gives_back = scenario.gives_back and first
        self._seals = first
        self._set_aside: list[str] = []
        self.jobs: list[Job] = []
        self.ran: list[int] = []
        self.seal_keys: set[bytes] = set()

    def step(self) -> None:
        """Do one turn: retrieve, or finish a task; then start the next one. Beat while a lease's first task runs."""
        crashes = len(self._world.crashes)
        if self.jobs:
            self._finish(self.jobs[0])
            self._start()
        else:
            self._retrieve()
            self._start()
            self._extend()
        if self._scenario.mortal and len(self._world.crashes) > crashes:
            self.jobs = []

    def _retrieve(self) -> None:
        request = RetrieveTasks(
            attempt_id=self._world.ids.fresh(), worker_id=self._name, executors=1, chunks=1, host=self._name,
            pythons=["3.11"] if self._scenario.lacking else [], set_aside=self._set_aside,
        )  # fmt: skip
        ask = self._world.ask_or_die if self._scenario.mortal else self._world.ask
        if self._gives_back:
            ask("worker", routes.RETRIEVE_TASKS, replace(request, peek=True))
        reply = ask("worker", routes.RETRIEVE_TASKS, request)
        self.jobs = [Job(lease) for lease in reply.leases] if reply else []
        for job in list(self.jobs):
            self._verify(job)
            if self._scenario.lacking and job.lease.elsewhere:
                self._set_aside = [job.lease.package_id]
                self._give_back(job, Unfit(self._name, "no module named 'numpy'"))

    def _verify(self, job: Job) -> None:
        """Refuse a lease if the client has not sealed it."""
        if job.lease.seal_key is not None:
            self.seal_keys.add(job.lease.seal_key)
        try:
            verify(job.lease)
        except SealBroken as broken:
            self._publish(job, [], closes=True, refused="seal", message=str(broken))

    def _start(self) -> None:
        for job in self.jobs:
            job.running = job.todo.popleft()
            self.ran.append(job.running)
            if job.running == self._scenario.deadly:
                self.jobs = []

    def _finish(self, job: Job) -> None:
        assert job.running is not None
        index, job.running = job.running, None
        result = self._result(job, index, "ok")
        if self._gives_back and job.todo:
            self._gives_back = False
            self._publish(job, [result], closes=False)
            self._give_back(job)
        else:
            self._publish(job, [result], closes=not job.todo)

    def _result(self, job: Job, index: int, outcome: Outcome) -> TaskResult:
        duration_us = TASK_US + 2 ** (len(self._used_us) % 9)
        self._used_us[job.lease.lease_id, index] = duration_us
        if outcome != "ok":
            return TaskResult(index, outcome, duration_us, message="stopped")
        body = value(index, self._scenario.more_bytes)
        if not self._scenario.blobs or index % 2:
            return TaskResult(index, outcome, duration_us, data=body)
        return TaskResult(index, outcome, duration_us, blob=self._upload(job, body))

    def _upload(self, job: Job, body: bytes) -> BlobRef:
        lease = job.lease
        wanted = PrepareResult(
            package_id=lease.package_id, lease_id=lease.lease_id, seq=job.seq, size=len(body), crc32=zlib.crc32(body)
        )
        (prepared,) = self._world.ask("worker", routes.PREPARE_RESULTS, PrepareResults(results=[wanted])).results
        assert self._world.stores.transfer(prepared.link, body).status == 200
        return BlobRef(prepared.key, len(body))

    def _publish(
        self, job: Job, results: list[TaskResult], *, closes: bool, refused: Literal["seal"] | None = None,
        message: str | None = None,
    ) -> None:  # fmt: skip
        lease = job.lease
        seals = None if refused else seals_of(lease)
        publication = Publication(
            **lease.identity(),
            seq=job.seq, results=seals.sealed(results) if seals and self._seals else results, closes=closes,
            wait_us=lease.wait_us, refused=refused, message=message,
        )  # fmt: skip
        job.seq += 1
        if closes:
            self.jobs.remove(job)
        request = PublishResults(worker_id=self._name, executors=1, publications=[publication], seals=self._seals)
        if self._scenario.mortal:
            reply = self._world.ask_or_die("worker", routes.PUBLISH_RESULTS, request)
        else:
            reply = self._world.ask("worker", routes.PUBLISH_RESULTS, request)
        if reply is not None and job in self.jobs:
            self._obey(job, reply.leases[0])

    def _give_back(self, job: Job, unfit: Unfit | None = None) -> None:
        lease = job.lease
        item = Return(
            **lease.identity(),
            seq=job.seq, ranges=[(job.todo[0], job.todo[-1] + 1)], closes=True, unfit=unfit,
        )  # fmt: skip
        self.jobs.remove(job)
        self._world.ask("worker", routes.GIVE_BACK, GiveBack(worker_id=self._name, returns=[item]))

    def leave(self) -> None:
        """End in good order."""
        self._world.ask("worker", routes.GIVE_BACK, GiveBack(worker_id=self._name, returns=[], leaving=True))

    def _extend(self) -> None:
        if not self.jobs:
            return
        request = ExtendLeases(worker_id=self._name, leases=[job.ref for job in self.jobs])
        reply = self._world.ask("worker", routes.EXTEND_LEASES, request)
        for job, view in zip(list(self.jobs), reply.leases, strict=True):
            self._obey(job, view)

    def _obey(self, job: Job, view: LeaseView) -> None:
        """Do what the master says about a lease: stop what it does not want, and publish the time of that."""
        wanted = {index for start, end in view.ranges for index in range(start, end)}
        job.todo = deque(index for index in job.todo if index in wanted)
        stopped = job.running if job.running not in wanted else None
        if stopped is None and (job.todo or job.running is not None):
            return
        job.running = None if stopped is not None else job.running
        results = [self._result(job, stopped, "cancelled")] if stopped is not None else []
        self._publish(job, results, closes=not job.todo)
