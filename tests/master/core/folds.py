"""Packages for tests of the fold, and short names for what happens to them."""

from collections.abc import Iterable, Sequence

from cloudpar_master.core.effects import Reserve, pending
from cloudpar_master.core.events import Event, Published, QuotaGranted
from cloudpar_master.core.fold import Folded, fold
from cloudpar_master.core.head import Head, OpenRange
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import Range, TaskResult
from support.heads import make_head

NOW = 1_800_000_000.0
POLICY = Policy(kept_bytes=0)
"""Without `kept_bytes`, each of the small packages in these tests goes through all steps of a deletion."""
PLENTY_US = 10**15


def take(head: Head, *events: Event, now: float | None = None, policy: Policy = POLICY) -> Folded:
    return fold(head, events, head.now if now is None else now, policy)


def then(head: Head, *events: Event, now: float | None = None, policy: Policy = POLICY) -> Head:
    return take(head, *events, now=now, policy=policy).head


def new(
    tasks: int = 100, *, chunksize: int | None = 10, window: int = 4, name: str = "", policy: Policy = POLICY
) -> Head:
    head = make_head("p", "a", tasks, NOW, name=name, chunksize=chunksize, window=window)
    return then(head, policy=policy)


def running(
    tasks: int = 100,
    *,
    chunksize: int | None = 10,
    window: int = 4,
    granted_us: int = PLENTY_US,
    policy: Policy = POLICY,
) -> Head:
    """Return a package whose first slice has come, so that its window is open."""
    return granted(new(tasks, chunksize=chunksize, window=window, policy=policy), granted_us, policy=policy)


def granted(head: Head, granted_us: int, *, exhausted: bool = False, policy: Policy = POLICY) -> Head:
    answer = QuotaGranted(slice=asked(head).slice, granted_us=granted_us, exhausted=exhausted)
    return then(head, answer, policy=policy)


def asked(head: Head, policy: Policy = POLICY) -> Reserve:
    (reserve,) = [effect for effect in pending(head, policy) if isinstance(effect, Reserve)]
    return reserve


def result(index: int, duration_us: int = 1_000, outcome: Outcome = "ok") -> TaskResult:
    return TaskResult(index, outcome, duration_us)


def published(
    generation: int,
    indices: Iterable[int],
    *,
    duration_us: int = 1_000,
    outcome: Outcome = "ok",
    wait_us: int = 100_000,
    worker_id: str = "w",
    executors: int = 2,
) -> Published:
    return Published(
        worker_id=worker_id,
        executors=executors,
        generation=generation,
        results=[result(index, duration_us, outcome) for index in indices],
        wait_us=wait_us,
    )


def spans(chunks: Sequence[OpenRange]) -> list[Range]:
    return [(chunk.start, chunk.end) for chunk in chunks]


def finished(head: Head) -> Head:
    """Run a package to its end, chunk by chunk."""
    while not head.life.ended:
        chunk = head.tasks.open[0]
        head = then(head, published(chunk.generation, range(chunk.start, chunk.end)))
        if head.quota.wanted_us:
            head = granted(head, head.quota.wanted_us)
    return head
