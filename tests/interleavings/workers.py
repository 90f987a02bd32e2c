"""What workers do.

All that such a worker knows is a `Memory`, which the checker copies, compares and restores. A worker of other tests is
an object that changes, so it cannot stand here.
"""

from typing import Final, NamedTuple

from msgspec.structs import replace

from cloudpar_master.services.steps import finish
from cloudpar_protocol import ranges
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import BlobRef, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    LeaseRef,
    LeaseView,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)

from .desk import Deed, Desk, Held, Memory

TASK_US = 1_000
"""A task takes a little longer than this. Executions of different workers take different times, so that a wrong charge
is noticed."""


def value(index: int) -> bytes:
    """Return the right result of a task."""
    return b"%d" % index


def duration_us(worker: str, index: int) -> int:
    """Return how long a worker takes for a task."""
    return TASK_US + 16 * sum(worker.encode()) + index


def retrieve(chunks: int = 1, *, besides: bool = False) -> Deed:
    """Retrieve chunks."""

    def do(desk: Desk, memory: Memory) -> Memory:
        request = RetrieveTasks(
            attempt_id=f"{desk.actor.name}{memory.at}", worker_id=desk.actor.name, executors=1, chunks=chunks,
            besides=[held.ref.package_id for held in memory.leases] if besides else [], again=memory.tries > 0,
        )  # fmt: skip
        leases = tuple(
            Held(
                LeaseRef(**lease.identity()),
                tuple(index for start, end in lease.ranges for index in range(start, end)),
                lease.attempt,
            )
            for lease in desk.worker.retrieve_tasks(request).leases
        )
        return replace(memory, leases=memory.leases + leases)

    return Deed(f"retrieve {chunks}", do)


class How(NamedTuple):
    """How a worker publishes.

    Attributes:
        most: How many results a publication has at most.
        closes: Whether it closes a lease whose results are all published.
        skips: How many results of each lease are lost on the way; the worker treats them as published.
        outcome: Of all tasks.
        blobs: Whether the results are uploaded.
    """

    most: int = 100
    closes: bool = True
    skips: int = 0
    outcome: Outcome = "ok"
    blobs: bool = False


ALL: Final = How()


def publish(how: How = ALL) -> Deed:
    """Publish the next results of all leases."""

    def do(desk: Desk, memory: Memory) -> Memory:
        if not memory.leases:
            return memory
        publications = [_publication(desk, held, how) for held in memory.leases]
        request = PublishResults(worker_id=desk.actor.name, executors=1, publications=publications, seals=True)
        views = finish(desk.worker.publish_results(request)).leases
        left = zip(memory.leases, publications, views, strict=True)
        leases = tuple(_after(held, pub, view, how.skips) for held, pub, view in left if not pub.closes)
        return replace(memory, leases=leases)

    return Deed(f"publish {how.most}{' without some' if how.skips else ''}", do)


def _publication(desk: Desk, held: Held, how: How) -> Publication:
    todo = held.todo[how.skips :]
    results = [_result(desk, held, index, how) for index in todo[: how.most]]
    closes = how.closes and len(todo) <= how.most
    return Publication(**held.ref.identity(), seq=held.seq, results=results, closes=closes)


def _result(desk: Desk, held: Held, index: int, how: How) -> TaskResult:
    lasted_us = duration_us(desk.actor.name, index)
    if how.outcome != "ok":
        return TaskResult(index, how.outcome, lasted_us, message="it has no value")
    if not how.blobs:
        return TaskResult(index, how.outcome, lasted_us, data=value(index))
    key = f"results/{held.ref.package_id}/{held.ref.lease_id}/{held.seq}{index}"
    desk.blobs.upload(key)
    return TaskResult(index, how.outcome, lasted_us, blob=BlobRef(key, 1))


def _after(held: Held, publication: Publication, view: LeaseView, skips: int) -> Held:
    published = {result.index for result in publication.results} | set(held.todo[:skips])
    todo = tuple(index for index in held.todo if index not in published and ranges.contains(view.ranges, index))
    return replace(held, todo=todo, seq=held.seq + 1)


def give_back(most: int = 100, *, leaving: bool = False) -> Deed:
    """Give the first tasks of all leases back, and close the leases, as if the other tasks were published."""

    def do(desk: Desk, memory: Memory) -> Memory:
        returns = [
            Return(
                **held.ref.identity(),
                seq=held.seq,
                ranges=ranges.of(held.todo[:most]),
                closes=True,
                attempt=held.attempt,
            )
            for held in memory.leases
            if held.todo
        ]
        desk.worker.give_back(GiveBack(worker_id=desk.actor.name, returns=returns, leaving=leaving))
        return replace(memory, leases=())

    return Deed(f"give {most} back", do)


def _beat(desk: Desk, memory: Memory) -> Memory:
    """Extend all leases, and report the time of tasks that are not wanted."""
    if not memory.leases:
        return memory
    refs = [held.ref for held in memory.leases]
    views = desk.worker.extend_leases(ExtendLeases(worker_id=desk.actor.name, leases=refs)).leases
    left: list[Held] = []
    stopped: list[Publication] = []
    for held, view in zip(memory.leases, views, strict=True):
        todo = tuple(index for index in held.todo if ranges.contains(view.ranges, index))
        unwanted = [index for index in held.todo if index not in todo]
        if unwanted:
            results = [_result(desk, held, index, How(outcome="cancelled")) for index in unwanted]
            stopped.append(Publication(**held.ref.identity(), seq=held.seq, results=results, closes=not todo))
        if todo:
            left.append(replace(held, todo=todo, seq=held.seq + bool(unwanted)))
    if stopped:
        request = PublishResults(worker_id=desk.actor.name, executors=1, publications=stopped, seals=True)
        finish(desk.worker.publish_results(request))
    return replace(memory, leases=tuple(left))


BEAT = Deed("beat", _beat)
