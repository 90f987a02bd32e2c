"""Distributes ready tasks among executors."""

from functools import partial

from . import instructions as do
from .choosing import choose, running_us
from .executor_record import ExecutorRecord, Stop
from .facts import Facts
from .feeding import ONE_AHEAD_US, run_tasks, undivided_tasks
from .peeking import holds_back, ran_out
from .prefetching import remaining_us
from .supervision import spawn
from .suspects import runnable


def feed(facts: Facts, now_us: int, executors: list[ExecutorRecord]) -> None:
    """Give ready tasks to these executors, as runs of consecutive tasks.

    The executor with the fewest queued tasks is first.

    If an idle executor cannot serve the next lease, a fresh executor replaces it.
    """
    ready = runnable(facts)
    usable = [executor for executor in executors if executor.usable and not executor.needs_measuring]
    for executor in sorted(usable, key=ExecutorRecord.queued) if ready else ():
        parts: dict[str, int] = {}  # for each lease id, how many tasks of the lease this executor may still get
        while ready and _takes_tasks(facts, executor, now_us):
            record = choose(facts, executor, ready, now_us)
            if record is None or holds_back(facts, record, now_us):
                break
            if not executor.serves(record.lease):
                # An executor serves one account, thread limit, network and Python only; a fresh one replaces this one.
                facts.kill(executor, Stop())
                if record.lease.codec == "pickle":
                    facts.python = record.lease.python
                spawn(facts, now_us)
                break
            durations = facts.durations_of(record.lease)
            lease_id = record.lease.lease_id
            if lease_id not in parts:
                equal = -(-record.ready_tasks // facts.wanted_executors)
                parts[lease_id] = max(equal, undivided_tasks(durations))
            tasks = 0 if executor.worn else run_tasks(executor, durations, record.item_bytes, parts[lease_id])
            if not tasks:
                break
            facts.turns.fed(record, ready, facts.leases.values(), partial(running_us, facts, now_us), now_us)
            taken = record.take(tasks)
            parts[lease_id] -= taken[1] - taken[0]
            executor.feed(record, *taken, now_us)
            facts.out.append(do.Feed(executor.executor_id, record.lease, taken))
            if not record.ready:
                ready.remove(record)
                ran_out(facts, record, ready)


def _takes_tasks(facts: Facts, executor: ExecutorRecord, now_us: int) -> bool:
    """Whether an executor is idle, or may get further tasks behind its running task.

    It may get no further tasks if the running task probably needs ONE_AHEAD_US or more until its end, or if the
    duration of the running task is unknown: another executor might run the further tasks sooner. It also gets none if
    it is worn. `feed` calls this function before `choose`, because `choose` looks at all leases and would take too long
    for every busy executor.
    """
    run = executor.running
    if run is None:
        return True
    if executor.worn:
        return False
    mean_us = facts.durations_of(run.record.lease).mean_us
    return bool(mean_us) and remaining_us(mean_us, now_us - executor.started_at_us, 0) < ONE_AHEAD_US
