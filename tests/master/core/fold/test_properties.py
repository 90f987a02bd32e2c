"""A package under all kinds of events, in any order, repeated and late."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec.structs import replace

from cloudpar_master.core.effects import Delete, Reserve, Send, Settle, due_at, pending
from cloudpar_master.core.events import (
    Acknowledged,
    CancelAsked,
    Cleared,
    Deleted,
    Event,
    ExecutorsIdle,
    GaveBack,
    Lost,
    QuotaGranted,
    Sent,
    Settled,
)
from cloudpar_master.core.head import HEAD_BYTES, Head, OpenRange, stored
from cloudpar_master.core.policy import Policy
from cloudpar_protocol import ranges
from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import Range
from master.core.folds import new, published, take

POLICY = Policy(first_window=2, largest_window=12, lifetime_s=10_000.0, retention_s=1_000.0, tombstone_s=100.0)
GRANTED_US = 4 * 10**7

chances = st.integers(0, 10**6)
outcomes: st.SearchStrategy[Outcome] = st.sampled_from(["ok", "ok", "ok", "error", "cancelled", "quota"])


class Package(RuleBasedStateMachine):
    """All events that may come, and what must always hold for the head."""

    def __init__(self) -> None:
        super().__init__()
        self.head = new()
        self.committed: dict[int, int] = {}
        self.stopped_us = 0
        self.chunks: list[OpenRange] = []
        self.sent: list[Event] = []
        self.slices: dict[int, int] = {}
        self.ahead_s = 0.0

    @initialize(tasks=st.integers(1, 400), chunksize=st.none() | st.integers(1, 60), window=st.integers(1, 12))
    def start(self, tasks: int, chunksize: int | None, window: int) -> None:
        self.head = new(tasks, chunksize=chunksize, window=window, policy=POLICY)

    # what workers and clients send

    def chunk(self, chance: int) -> OpenRange:
        """Choose one of the chunks that were ever cut, more often one of the newest."""
        return self.chunks[-1 - min(chance % 7 * (chance % 3), len(self.chunks) - 1)]

    @precondition(lambda self: self.chunks)
    @rule(chance=chances, wait_us=st.sampled_from([0, 10**5, 10**7]), data=st.data(), worker=st.integers(0, 99))
    def publish(self, chance: int, wait_us: int, data: st.DataObject, worker: int) -> None:
        chunk = self.chunk(chance)
        indices = data.draw(st.lists(st.integers(chunk.start, chunk.end - 1), max_size=30))
        duration_us, outcome = data.draw(st.integers(0, 10**6)), data.draw(outcomes)
        self.send(
            published(
                chunk.generation, indices, duration_us=duration_us, outcome=outcome, wait_us=wait_us,
                worker_id=f"{worker}" * 100,
            )
        )  # fmt: skip

    @precondition(lambda self: self.chunks)
    @rule(chance=chances)
    def finish(self, chance: int) -> None:
        chunk = self.chunk(chance)
        self.send(published(chunk.generation, range(chunk.start, chunk.end), duration_us=chance))

    @precondition(lambda self: self.chunks)
    @rule(chance=chances, data=st.data())
    def give_back(self, chance: int, data: st.DataObject) -> None:
        chunk = self.chunk(chance)
        self.send(GaveBack(generation=chunk.generation, ranges=data.draw(st.lists(_within(chunk), max_size=5))))

    @precondition(lambda self: self.chunks)
    @rule(chance=chances, data=st.data(), by_publication=st.booleans())
    def close(self, chance: int, data: st.DataObject, by_publication: bool) -> None:
        """Close a lease, although some of its tasks may have been neither published nor given back."""
        chunk = self.chunk(chance)
        closed = chunk.start, chunk.end
        if by_publication:
            indices = data.draw(st.lists(st.integers(chunk.start, chunk.end - 1), max_size=30))
            self.send(replace(published(chunk.generation, indices), closed=closed))
        else:
            some = data.draw(st.lists(_within(chunk), max_size=5))
            self.send(GaveBack(generation=chunk.generation, ranges=some, closed=closed))
        left = [each for each in self.head.tasks.open if each.generation == chunk.generation]
        assert not ranges.intersect([(each.start, each.end) for each in left], [closed]), "no message brings them again"

    @precondition(lambda self: self.chunks)
    @rule(chance=chances)
    def lose(self, chance: int) -> None:
        chunk = self.chunk(chance)
        self.send(Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=4))

    @precondition(lambda self: self.chunks)
    @rule(chance=chances)
    def clear(self, chance: int) -> None:
        chunk = self.chunk(chance)
        if self.head.tasks.draining:
            self.send(Cleared(generation=chunk.generation, ranges=[(chunk.start, chunk.end)]))

    @rule(asked=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=4))
    def cancel_some(self, asked: list[Range]) -> None:
        self.send(CancelAsked(ranges=[(start, min(end, start + 9)) for start, end in asked]))

    @rule(chance=chances, event=st.sampled_from([CancelAsked(), CancelAsked(only_queued=True), Acknowledged()]))
    def wind_up(self, chance: int, event: Event) -> None:
        if chance % 4 == 0:
            self.send(event)

    @rule(executors=st.integers(1, 10_000))
    def idle(self, executors: int) -> None:
        self.send(ExecutorsIdle(executors=executors))

    @precondition(lambda self: self.sent)
    @rule(chance=chances)
    def send_again(self, chance: int) -> None:
        self.send(self.sent[chance % len(self.sent)])

    @precondition(lambda self: len(self.sent) > 1)
    @rule(picks=st.lists(chances, min_size=2, max_size=8))
    def send_many_again(self, picks: list[int]) -> None:
        self.fold([self.sent[chance % len(self.sent)] for chance in picks])

    # what time and the outside world bring

    @rule(seconds=st.sampled_from([-50.0, 0.5, 5.0, 20.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.ahead_s = seconds
        self.fold([])
        self.ahead_s = 0.0

    @rule(which=st.integers(0, 3), kept=st.booleans())
    def carry_out(self, which: int, kept: bool) -> None:
        effects = pending(self.head, POLICY)
        if which < len(effects):
            answer = self.answer(effects[which], whole=kept)
            if answer is not None:
                self.send(answer)

    def answer(self, effect: object, *, whole: bool = True) -> Event | None:
        match effect:
            case Reserve(slice=number, wanted_us=wanted_us):
                left_us = GRANTED_US - sum(self.slices.values())
                granted_us = self.slices.get(number) or min(wanted_us, left_us)
                if granted_us:
                    self.slices[number] = granted_us
                return QuotaGranted(slice=number, granted_us=granted_us, exhausted=granted_us == 0)
            case Send(chunks=chunks):
                sent = chunks if whole else chunks[1:]
                return Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in sent])
            case Settle(used_us=used_us):
                return Settled(charged_us=min(used_us, sum(self.slices.values())))
            case Delete():
                return Deleted()
        return None

    # what must always hold

    def send(self, event: Event) -> None:
        self.sent.append(event)
        self.fold([event])
        counted = self.counted()
        self.fold([event])
        assert self.counted() == counted, "an event that is folded twice changes nothing that counts"

    def counted(self) -> tuple[object, ...]:
        head = self.head
        tasks = ranges.union((chunk.start, chunk.end) for chunk in head.tasks.open)
        outstanding = ranges.union(tasks, [(head.tasks.cursor, head.tasks.count)])
        money = (head.quota.used_us, head.quota.reserved_us, head.pace.execute_us, head.life.settled)
        return (
            head.life.state,
            head.tasks.done,
            head.tasks.errors,
            head.tasks.cancelled,
            head.tasks.stopping,
            outstanding,
            money,
        )

    def fold(self, events: list[Event]) -> None:
        before = self.head
        after, results = take(before, *events, now=before.now + self.ahead_s, policy=POLICY)
        self.head = after
        for each in results:
            assert each.index not in self.committed, "a task is committed once"
            assert each.outcome != "cancelled", "what was cancelled has no result"
            self.committed[each.index] = each.duration_us
        assert after.version == before.version + 1
        assert after.now >= before.now
        assert after.page == (after.version if results else before.page)
        assert before.life.state in {"running", after.life.state} or after.life.state == "expired"
        stopped_us = after.quota.used_us - sum(self.committed.values())
        assert stopped_us >= self.stopped_us, "a charge is never taken back"
        assert stopped_us == self.stopped_us or before.tasks.stopping or after.life.ended or after.tasks.cancelled
        self.stopped_us = stopped_us
        _check(after, set(self.committed))
        self.chunks += [chunk for chunk in after.tasks.open if chunk.generation == after.version]

    def teardown(self) -> None:
        """Let the workers finish: every package ends, is settled, and is forgotten in the end."""
        for _ in range(3_000):
            effects = pending(self.head, POLICY)
            answers = [answer for effect in effects if (answer := self.answer(effect)) is not None]
            work = [published(chunk.generation, range(chunk.start, chunk.end)) for chunk in self.head.tasks.open[:1]]
            if not answers and not work:
                if self.head.life.deleted_at is not None and effects:
                    return
                self.ahead_s = max(due_at(self.head, POLICY) - self.head.now, 0.0)
            self.fold([*answers, *work])
            self.ahead_s = 0.0
        raise AssertionError(self.head)


def _within(chunk: OpenRange) -> st.SearchStrategy[Range]:
    numbers = st.integers(chunk.start, chunk.end)
    return st.tuples(numbers, numbers)


def _numbers(some: list[Range]) -> set[int]:
    return {number for start, end in some for number in range(start, end)}


def _check(head: Head, committed: set[int]) -> None:
    cancelled, stopping = _numbers(head.tasks.cancelled), _numbers(head.tasks.stopping)
    outstanding = [number for chunk in head.tasks.open for number in range(chunk.start, chunk.end)]
    assert outstanding == sorted(set(outstanding)), "open ranges are sorted and disjoint"
    open_tasks = set(outstanding)
    assert not open_tasks & (committed | cancelled | stopping)
    assert not committed & (cancelled | stopping)
    assert head.tasks.done == len(committed) + len(cancelled)
    assert all(chunk.start < chunk.end <= head.tasks.cursor <= head.tasks.count for chunk in head.tasks.open)
    if not head.life.ended:
        assert committed | cancelled | open_tasks | set(range(head.tasks.cursor, head.tasks.count)) == set(
            range(head.tasks.count)
        )
    assert head.life.state != "completed" or head.tasks.done == head.tasks.count
    assert head.quota.charged_us <= head.quota.reserved_us <= GRANTED_US
    assert head.tasks.errors >= ranges.size(head.tasks.failed)
    assert _numbers(head.tasks.failed) <= committed
    assert len(stored.encode(head)) < HEAD_BYTES
    assert stored.decode(stored.encode(head)) == head


TestPackage = Package.TestCase
TestPackage.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
