"""All that an agent knows at one moment, and the few changes that several stimuli share."""

from collections.abc import Sequence
from typing import Final

from cloudpar_protocol.limits import BULK_ITEMS
from cloudpar_protocol.payloads import TaskResult, Unfit
from cloudpar_protocol.worker_messages import Lease, Publication

from . import instructions as do
from .budgets import Budgets
from .durations import FunctionLengths, PackageDurations
from .executor_record import ExecutorRecord, Stop
from .lease_record import LeaseRecord
from .turns import Turns

NEVER: Final = 2**62

PAUSE_US: Final = 1_000_000
"""How long a worker asks for nothing beside what it runs, the first time that a suspect went back."""


class Facts:
    """The state behind WorkerState.

    Attributes:
        wanted_executors, memory_bytes: How the worker was started; memory is for one executor.
        host: What this machine is called.
        pythons: The versions of Python that executors can have.
        python: The one that the next executor gets.
        leases: In the order in which they came.
        set_aside: What this worker lacks, by the packages that it cannot run for that; the oldest are forgotten.
        lengths: How long the tasks of functions took in earlier packages.
        killed: How often somebody outside killed the executor of a task (lease, index).
        unreported_us: What publications cost, by package, until a publication has said it.
        spawn_at_us, retrieve_at_us, beat_at_us, measure_at_us: When each may happen next.
        resume_at_us: Until when it asks for nothing beside what has begun, since suspects went back.
        pause_us: How long that is the next time.
        retrieving, peeking, fetching, beating, publish_jobs: What is under way; fetching is a retrieval of chunks of
            other packages than those that have tasks here.
        holds: The master holds requests.
        others_wait: A peek has seen such chunks, or the master has mentioned one, and none were asked for since.
        peek_at_us: When to look again.
        fetch_ends_at_us: Until when free executors wait for what is being fetched.
        publish_now: Somebody may be waiting for what is pending.
        chunk_us: How long the chunk that came last will take; 0: unknown.
        nested: Tasks wait for tasks of their own, or have lately done so.
        last_nested_at_us: When one waited last.
        hungry: The master said so, and nothing was given back since.
        drain_started_at_us: Since when.
        last_busy_at_us: When tasks ran last, while draining.
        gave_up: What is left will not be published.
        out: The instructions so far.
        decided_at_us: When everything was looked at last.
        deadline_at_us: When something is due even if nothing happens.
    """

    def __init__(self, *, executors: int, memory_bytes: int, pythons: Sequence[str], host: str = "") -> None:
        self.host = host
        self.wanted_executors = executors
        self.memory_bytes = memory_bytes
        self.pythons = list(pythons)
        self.python = pythons[0]
        self.leases: dict[str, LeaseRecord] = {}
        self.executors: dict[int, ExecutorRecord] = {}
        self.durations: dict[str, PackageDurations] = {}
        self.lengths = FunctionLengths()
        self.budgets = Budgets()
        self.set_aside: dict[str, Unfit] = {}
        self.turns = Turns()
        self.killed: dict[tuple[str, int], int] = {}
        self.unreported_us: dict[str, int] = {}
        self.next_executor = 0
        self.failed_starts = 0
        self.spawn_at_us = self.retrieve_at_us = self.resume_at_us = 0
        self.pause_us = PAUSE_US
        self.beat_at_us = self.measure_at_us = NEVER
        self.retrieving = self.peeking = self.fetching = self.beating = False
        self.holds = self.others_wait = False
        self.peek_at_us = self.fetch_ends_at_us = 0
        self.publish_jobs = 0
        self.publish_now = False
        self.chunk_us = 0.0
        self.nested, self.last_nested_at_us = False, 0
        self.hungry = False
        self.drain_started_at_us: int | None = None
        self.last_busy_at_us = 0
        self.gave_up = self.exited = False
        self.out: list[do.Instruction] = []
        self.deadline_at_us = self.decided_at_us = 0

    def durations_of(self, lease: Lease) -> PackageDurations:
        """How long tasks of a lease's package last."""
        durations = self.durations.get(lease.package_id)
        if durations is None:
            told_us = lease.mean_us or self.lengths.mean_us(lease)
            durations = self.durations[lease.package_id] = PackageDurations(told_us)
        return durations

    @property
    def busy(self) -> bool:
        """Whether tasks are in executors."""
        return any(record.fed for record in self.leases.values())

    def finish(self, record: LeaseRecord, results: Sequence[TaskResult], now_us: int) -> None:
        """Fed tasks of one lease have results, one after the other."""
        lease = record.lease
        total_us = sum([result.duration_us for result in results])
        durations = self.durations_of(lease)
        durations.measured(total_us, len(results))
        self.lengths.measured(lease, durations.mean_us)
        self.budgets.used(lease.package_id, total_us)
        self.turns.ran(lease.package_id, total_us)
        self.out += [do.Discard(lease.lease_id, used) for used in record.finished(results, now_us)]

    def retrieve(self, chunks: int, hold_s: float, besides: Sequence[str] = (), *, peek: bool = False) -> None:
        """Ask the master for chunks, or whether there are any."""
        pythons, set_aside = list(self.pythons), list(self.set_aside)
        self.out.append(do.Retrieve(chunks, hold_s, self.host, pythons, set_aside, list(besides), peek))

    def kill(self, executor: ExecutorRecord, stop: Stop) -> None:
        """Stop an executor, once."""
        if executor.stop is None:
            executor.stop = stop
            self.out.append(do.Kill(executor.executor_id))

    def send(self, publications: list[Publication]) -> None:
        """Publish."""
        if publications:
            self.publish_jobs += 1
            self.out.append(do.Publish(publications))

    def lacks_python(self, record: LeaseRecord) -> None:
        """A lease needs a Python that this worker has not."""
        if record.lease.elsewhere:
            self.set_package_aside(record.lease.package_id, f"no Python {record.lease.python}")
            return
        have = sorted(self.pythons, key=lambda version: (len(version), version))
        names = ", ".join(have[:-1]) + " or " + have[-1] if have[1:] else have[0]
        record.refuse(
            "python",
            f"the package was made by Python {record.lease.python}, this worker's executors run Python {names}: "
            f"use Python {names} at the client, or start workers with Python {record.lease.python}",
        )

    def set_package_aside(self, package_id: str, lacks: str) -> None:
        """This worker cannot run a package: what it has of it goes back, and it asks for no more of it."""
        if package_id not in self.set_aside:
            text = f"this worker cannot run package {package_id}, and leaves it to workers that can: {lacks}"
            self.out.append(do.Warn(text))
            if len(self.set_aside) >= BULK_ITEMS:
                del self.set_aside[next(iter(self.set_aside))]
            self.set_aside[package_id] = Unfit(self.host, lacks)
        for record in self.leases.values():
            if record.lease.package_id == package_id and record.lease.elsewhere:
                record.unfit = self.set_aside[package_id]

    def forget(self, record: LeaseRecord) -> None:
        """A lease is done with, and so may be its package."""
        lease = record.lease
        del self.leases[lease.lease_id]
        self.out.append(do.Forget(lease.lease_id))
        if self.killed:
            self.killed = {key: kills for key, kills in self.killed.items() if key[0] != lease.lease_id}
        others = [other.lease for other in self.leases.values()]
        if all(other.package_id != lease.package_id for other in others):
            self.durations.pop(lease.package_id, None)
            self.unreported_us.pop(lease.package_id, None)
            self.budgets.forget(lease.package_id)
