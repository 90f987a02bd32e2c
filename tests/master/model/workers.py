"""Workers that retrieve tasks, publish results, extend leases and give tasks back.

Hypothesis chooses each request, so these workers have no behaviour that other tests could share.
"""

from copy import copy
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from cloudpar_protocol import ranges, routes
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    LeaseRef,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from support.backends import WORKER_TOKEN

from .asking import which
from .passing import Passing
from .sides import POLICY, wait_us


class Workers(Passing):
    """Two workers. Some leases are closed before all of their tasks were published or given back.

    Attributes:
        repeats: Whether every side's queue repeats an attempt.
        seqs: By lease, the number of its next publication.
        sent: What was published, to be repeated.
    """

    repeats: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self.seqs: dict[int, int] = {}
        self.sent: list[tuple[int, list[TaskResult], int, bool]] = []
        self.attempt: tuple[str, int] | None = None

    @rule(worker=st.sampled_from(["w1", "w2"]), chunks=st.integers(1, 3))
    def retrieve(self, worker: str, chunks: int) -> None:
        self.attempt = f"attempt-{next(self.names)}", chunks
        self.take(worker, *self.attempt)

    @precondition(lambda self: self.repeats and self.attempt)
    @rule()
    def retrieve_again(self) -> None:
        assert self.attempt is not None
        self.take("w1", *self.attempt)

    def take(self, worker: str, attempt_id: str, chunks: int) -> list[int]:
        first = len(self.sides[0].leases)
        request = RetrieveTasks(attempt_id=attempt_id, worker_id=worker, executors=2, chunks=chunks)
        before = {package_id: copy(package) for package_id, package in self.reference.packages.items()}
        leases = self.ask(WORKER_TOKEN, routes.RETRIEVE_TASKS, request).leases
        for number, lease in enumerate(leases, first):
            self.reference.lease(number, lease, before[lease.package_id], self.clock.now())
            self.seqs[number] = 0
        return [first + number for number in range(len(leases))]

    def refs(self, number: int) -> list[dict[str, Any]]:
        """Return a lease as each side knows it."""
        names = ("package_id", "lease_id", "receipt", "start", "end", "generation")
        return [{name: getattr(side.leases[number], name) for name in names} for side in self.sides]

    @precondition(lambda self: self.seqs)
    @rule(
        which=which, part=st.tuples(st.integers(0, 11), st.integers(0, 12)), closes=st.booleans(),
        outcome=st.sampled_from(["ok", "ok", "ok", "error", "cancelled"]), duration_us=st.integers(0, 9_000),
    )  # fmt: skip
    def publish(self, which: int, part: tuple[int, int], closes: bool, outcome: Any, duration_us: int) -> None:
        number, (first, size) = which % len(self.seqs), part
        lease = self.sides[0].leases[number]
        indices = [index for start, end in lease.ranges for index in range(start, end)]
        results = [
            TaskResult(index, outcome, duration_us + index, data=b"value") for index in indices[first : first + size]
        ]
        seq, self.seqs[number] = self.seqs[number], self.seqs[number] + 1
        self.sent.append((number, results, seq, closes and number in self.reference.live))
        self.say(*self.sent[-1])

    @precondition(lambda self: self.sent)
    @rule(which=which)
    def publish_again(self, which: int) -> None:
        """Repeat a publication whose answer was lost."""
        self.say(*self.sent[which % len(self.sent)])

    def say(self, number: int, results: list[TaskResult], seq: int, closes: bool) -> None:
        lease = self.sides[0].leases[number]
        asked = [
            PublishResults(
                worker_id="w1", executors=2,
                publications=[Publication(
                    **ref, seq=seq, results=results, closes=closes, wait_us=wait_us(lease.wait_us, lease.attempt)
                )],
            )
            for ref in self.refs(number)
        ]  # fmt: skip
        self.reference.packages[lease.package_id].publish(results)
        stopped = [result.index for result in results if result.outcome == "cancelled"]
        self.reference.give_back(lease, ranges.of(stopped))
        if closes:
            self.reference.close(lease)
        (view,) = self.ask_each(WORKER_TOKEN, routes.PUBLISH_RESULTS, asked).leases
        assert not (view.state == "wanted" and self.reference.packages[lease.package_id].ended)

    @precondition(lambda self: self.reference.live)
    @rule(which=which)
    def extend(self, which: int) -> None:
        number = sorted(self.reference.live)[which % len(self.reference.live)]
        lease, until = self.reference.live[number]
        if until <= self.clock.now():
            return  # AWS refuses a receipt that has run out
        asked = [ExtendLeases(worker_id="w1", leases=[LeaseRef(**ref)]) for ref in self.refs(number)]
        (view,) = self.ask_each(WORKER_TOKEN, routes.EXTEND_LEASES, asked).leases
        if view.state == "wanted":
            self.reference.live[number] = lease, self.clock.now() + POLICY.lease_s

    @precondition(lambda self: self.reference.live)
    @rule(which=which, tasks=st.integers(1, 6), closes=st.booleans())
    def give_back(self, which: int, tasks: int, closes: bool) -> None:
        number = sorted(self.reference.live)[which % len(self.reference.live)]
        lease = self.sides[0].leases[number]
        indices = [index for start, end in lease.ranges for index in range(start, end)][-tasks:]
        numbers = ranges.of(indices)
        seq, self.seqs[number] = self.seqs[number], self.seqs[number] + 1
        asked = [
            GiveBack(worker_id="w1", returns=[Return(**ref, seq=seq, ranges=numbers, closes=closes)])
            for ref in self.refs(number)
        ]
        self.reference.give_back(lease, numbers)
        if closes:
            self.reference.close(lease)
        self.ask_each(WORKER_TOKEN, routes.GIVE_BACK, asked)

    @precondition(lambda self: self.seqs)
    @rule(which=which, size=st.integers(1, 10**6))
    def prepare_results(self, which: int, size: int) -> None:
        lease = self.sides[0].leases[which % len(self.seqs)]
        wanted = PrepareResult(package_id=lease.package_id, lease_id=lease.lease_id, seq=0, size=size, crc32=7)
        self.ask(WORKER_TOKEN, routes.PREPARE_RESULTS, PrepareResults(results=[wanted]))
