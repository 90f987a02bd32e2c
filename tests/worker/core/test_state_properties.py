"""In any order of stimuli, each task ends in one publication or give-back, and no two executors run it."""

import signal
from collections import Counter, deque
from typing import Any, get_args

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, RangeData, TaskCode
from cloudpar_protocol.worker_messages import Lease, LeaseView, Publication, Return
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.backlog import PUBLISH_JOBS
from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.core.state import WorkerState
from cloudpar_worker.shell.result_upload import is_large
from support.leases import lease_of

CODE = TaskCode("0" * 64, b"code")
LARGE = bytes(INLINE_RESULT_BYTES + 1)
REFERENCE = TaskCode("1" * 64, reference="package.module:function")
EXECUTORS = 2
PYTHONS = ["3.11", "3.12"]
Task = tuple[str, int]


class Executor:
    """A simulated executor: it runs tasks in order; its results stay in the channel until they are read."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.forked = self.killed = self.waits = False
        self.account: str | None = None
        self.queue: deque[Task] = deque()
        self.unread: list[ExecutorResult] = []
        self.count = 0
        self.hole = (0, 0)

    def progress(self) -> None:
        lease_id, index = self.queue.popleft()
        del lease_id
        skipped = self.skips
        result = ExecutorResult(index, "ok", 1000, LARGE if index % 3 == 1 else None)
        self.unread.append(ExecutorResult(index, SKIPPED, 0) if skipped else result)
        self.count += 1

    @property
    def skips(self) -> bool:
        """Whether it skips the next task of its queue."""
        return self.hole[0] <= self.count < self.hole[1]

    @property
    def started(self) -> int:
        return self.count + bool(self.queue)

    @property
    def runs(self) -> bool:
        """Whether it has tasks that it will not skip."""
        return any(
            not self.hole[0] <= count < self.hole[1] for count in range(self.count, self.count + len(self.queue))
        )


class Worker(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.pythons = list(PYTHONS)
        self.state = WorkerState(executors=EXECUTORS, memory_bytes=1000, pythons=PYTHONS, shared=True)
        self.now = 1_000_000
        self.executors: dict[int, Executor] = {}
        self.leases: dict[str, Lease] = {}
        self.unwanted: dict[str, set[int]] = {}
        self.taken_back: set[tuple[int, Task]] = set()
        self.said: dict[str, Counter[int]] = {}
        self.seq: Counter[str] = Counter()
        self.closed: set[str] = set()
        self.forgotten: set[str] = set()
        self.held: set[str] = set()
        self.asked = 0
        self.publishing: list[do.Publish] = []
        self.returning: list[list[Return]] = []
        self.downloads: list[do.Download] = []
        self.beats: list[do.Extend] = []
        self.looks: list[int] = []
        self.draining = self.exited = False
        self.say(on.TimePassed())

    def say(self, stimulus: on.Stimulus) -> None:
        self.now += 10
        assert not self.exited
        for instruction in self.state.handle(stimulus, self.now):
            getattr(self, f"do_{type(instruction).__name__.lower()}")(instruction)

    # What the agent's process does with instructions.

    def do_spawn(self, spawn: do.Spawn) -> None:
        assert spawn.python in self.pythons
        self.executors[spawn.executor_id] = Executor(spawn.python)

    def do_kill(self, kill: do.Kill) -> None:
        self.executors[kill.executor_id].killed = True

    def do_feed(self, feed: do.Feed) -> None:
        executor = self.executors[feed.executor_id]
        assert executor.forked
        assert not executor.killed
        assert not executor.waits
        if not executor.queue and not executor.unread:
            running = [one for one in self.executors.values() if one.runs and not (one.waits or one.killed)]
            assert len(running) < EXECUTORS
        assert executor.account in {None, feed.lease.account}
        executor.account = feed.lease.account
        assert executor.python == feed.lease.python or feed.lease.codec == "msgpack"
        for index in range(*feed.tasks):
            task = (feed.lease.lease_id, index)
            assert not self.said[task[0]][index], "it has its result"
            for number, other in self.executors.items():
                held = [one for one in other.queue if (number, one) not in self.taken_back]
                assert task not in held, "it is in an executor"
            self.taken_back.discard((feed.executor_id, task))
            executor.queue.append(task)

    def do_recall(self, recall: do.Recall) -> None:
        executor = self.executors[recall.executor_id]
        executor.hole = (recall.first, recall.end)
        if not executor.unread:
            # The agent knows no more than this: the running task has started, and the next ones are skipped.
            assert executor.count + 1 == recall.first

    def do_checkrecall(self, check: do.CheckRecall) -> None:
        self.looks.append(check.executor_id)

    def do_measure(self, _measure: do.Measure) -> None:
        pass

    def do_retrieve(self, retrieve: do.Retrieve) -> None:
        assert not self.asked
        assert not self.draining
        self.asked = retrieve.chunks

    def do_download(self, download: do.Download) -> None:
        self.downloads.append(download)

    def do_discard(self, _discard: do.Discard) -> None:
        pass

    def do_forget(self, forget: do.Forget) -> None:
        assert forget.lease_id in self.closed
        self.forgotten.add(forget.lease_id)
        self.held.discard(forget.lease_id)

    def check(self, item: Publication | Return) -> None:
        assert item.lease_id not in self.closed
        assert item.seq == self.seq[item.lease_id]
        self.seq[item.lease_id] += 1
        if item.closes:
            self.closed.add(item.lease_id)

    def do_publish(self, publish: do.Publish) -> None:
        for publication in publish.publications:
            self.check(publication)
            self.said[publication.lease_id].update(result.index for result in publication.results)
            if publication.refused is not None:  # the package fails, with all of its tasks
                self.unwanted[publication.lease_id].update(range(publication.start, publication.end))
            assert all(result.outcome in get_args(Outcome) for result in publication.results)
        accounts = {self.leases[each.lease_id].account for each in publish.publications}
        large = any(is_large(result) for each in publish.publications for result in each.results)
        assert (accounts == {publish.uploads_for}) if large else (publish.uploads_for is None)
        self.publishing.append(publish)
        assert sum(each.uploads_for == publish.uploads_for for each in self.publishing) <= PUBLISH_JOBS

    def do_extend(self, extend: do.Extend) -> None:
        assert not self.beats
        self.beats.append(extend)

    def do_givebacktasks(self, give_back: do.GiveBackTasks) -> None:
        for item in give_back.returns:
            self.check(item)
            for start, end in item.ranges:
                self.said[item.lease_id].update(range(start, end))
        self.returning.append(give_back.returns)

    def do_exit(self, _exit: do.Exit) -> None:
        self.exited = True

    # Stimuli, in random order.

    @precondition(lambda self: any(not executor.forked for executor in self.executors.values()))
    @rule()
    def fork(self) -> None:
        for number, executor in list(self.executors.items()):
            if not executor.forked:
                executor.forked = True
                self.say(on.ExecutorReady(number))

    @rule(which=st.integers(0, EXECUTORS), tasks=st.integers(1, 200), read=st.booleans())
    def work(self, which: int, tasks: int, read: bool) -> None:
        busy = [(number, one) for number, one in self.executors.items() if one.queue]
        if busy:
            number, executor = busy[which % len(busy)]
            for _ in range(min(tasks, len(executor.queue))):
                if executor.queue:
                    executor.progress()
            if read:
                self.read(number)

    def read(self, number: int) -> None:
        executor = self.executors[number]
        results, executor.unread = executor.unread, []
        if results:
            executor.waits = False
            self.say(on.Results(number, results, self.now))

    @rule(which=st.integers(0, EXECUTORS), code=st.sampled_from([-signal.SIGSEGV, -signal.SIGKILL, 0, 3, None]))
    def end(self, which: int, code: int | None) -> None:
        alive = [number for number, executor in self.executors.items() if executor.forked]
        if alive:
            self.ended(alive[which % len(alive)], code)

    def ended(self, number: int, code: int | None) -> None:
        self.read(number)
        del self.executors[number]
        self.say(on.ExecutorGone(number, code))

    @precondition(lambda self: any(executor.killed for executor in self.executors.values()))
    @rule()
    def die(self) -> None:
        for number, executor in list(self.executors.items()):
            if executor.killed and executor.forked:
                self.ended(number, -signal.SIGKILL)

    @rule(
        which=st.integers(0, EXECUTORS), rss=st.sampled_from([1, 700, 1001]), written=st.sampled_from([0, 2**30]),
        processes=st.sampled_from([0, 0, 0, 1]), cpu_us=st.sampled_from([0, 0, 10**9]),
    )  # fmt: skip
    def measure(self, which: int, rss: int, written: int, processes: int, cpu_us: int) -> None:
        if self.executors:
            number = sorted(self.executors)[which % len(self.executors)]
            self.say(on.Measured(number, rss, written, processes, cpu_us))

    @invariant()
    def each_lease_knows_how_many_of_its_tasks_executors_have(self) -> None:
        """A wrong count would close a lease too early, or keep a worker from draining."""
        facts = self.state.facts
        for record in facts.leases.values():
            runs = (run for executor in facts.executors.values() for run in executor.runs if run.record is record)
            assert record.fed == sum(run.end - run.next for run in runs if not run.recalled)

    @rule(which=st.integers(0, EXECUTORS))
    def garble(self, which: int) -> None:
        busy = [number for number, one in self.executors.items() if one.queue and not one.unread]
        if busy:
            self.say(on.GarbageReceived(busy[which % len(busy)], "noise"))

    @rule(which=st.integers(0, 3 * EXECUTORS), waits=st.sampled_from([True, True, False]))
    def wait(self, which: int, waits: bool) -> None:
        # A task that is skipped does not start, so it cannot wait for tasks of its own.
        busy = [
            number
            for number, one in self.executors.items()
            if one.queue and not (one.skips or one.unread or one.killed)
        ]
        if busy:
            number = busy[which % len(busy)]
            self.executors[number].waits = waits
            self.say(on.TaskWaits(number, waits))

    @precondition(lambda self: self.looks)
    @rule()
    def check_recalls(self) -> None:
        looks, self.looks = self.looks, []
        for number in looks:
            if number in self.executors:
                self.read(number)
                executor = self.executors[number]
                # Tasks that come back may be fed to another executor within the same stimulus, so they are allowed from
                # here on.
                for count, task in enumerate(executor.queue, executor.count):
                    if executor.hole[0] <= count < executor.hole[1]:
                        self.taken_back.add((number, task))
                self.say(on.RecallChecked(number, executor.started))

    @precondition(lambda self: self.asked)
    @rule(
        sizes=st.lists(st.integers(1, 300), max_size=3),
        blob=st.booleans(),
        facts=st.fixed_dictionaries(
            {
                "account": st.sampled_from(["red", "blue"]),
                "mean_us": st.sampled_from([0, 5, 1000, 30_000, 10**6]),
                "python": st.sampled_from(["3.11", "3.11", "3.12", "3.12", "3.13"]),
                "codec": st.sampled_from(["pickle", "pickle", "msgpack"]),
                "budget_us": st.sampled_from([10**12, 10**12, 0, 3000]),
                "depth": st.sampled_from([0, 0, 1, 2]),
            }
        ),
    )
    def answer(self, sizes: list[int], blob: bool, facts: dict[str, Any]) -> None:
        leases = []
        for size in sizes[: self.asked]:
            data: Any = BlobData(BlobRef("key", 8 * (size + 1))) if blob else RangeData(0, 1)
            code = REFERENCE if facts["codec"] == "msgpack" else CODE
            lease = lease_of(code, size, data=data, lease_s=0.3, **facts)
            leases.append(lease)
            self.leases[lease.lease_id] = lease
            self.said[lease.lease_id] = Counter()
            self.unwanted[lease.lease_id] = set() if self.runs(lease) else set(range(size))
        self.asked = 0
        self.say(on.Retrieved(leases, 0 if leases else 1000))

    def runs(self, lease: Lease) -> bool:
        return lease.python in self.pythons or lease.codec == "msgpack"

    @precondition(lambda self: len(self.pythons) > 1)
    @rule(often=st.sampled_from([False, False, True]))
    def lose_a_zygote(self, often: bool) -> None:
        python = self.pythons[-1]
        for number in [number for number, executor in self.executors.items() if executor.python == python]:
            self.ended(number, None)
        if often:
            self.pythons.remove(python)
            for lease_id, lease in self.leases.items():
                if not self.runs(lease):
                    self.unwanted[lease_id].update(range(lease.start, lease.end))
            self.say(on.PythonFailed(python))

    @rule()
    def stall(self) -> None:
        self.say(on.RequestFailed(10**9))

    @precondition(lambda self: self.downloads)
    @rule(part=st.integers(1, 300), fails=st.sampled_from([False, False, False, True]), stale=st.booleans())
    def downloaded(self, part: int, fails: bool, stale: bool) -> None:
        download = self.downloads.pop(0)
        lease_id, (start, end) = download.lease.lease_id, download.tasks
        if fails:
            self.say(on.DownloadFailed(lease_id, stale))
        else:
            self.held.add(lease_id)
            self.say(on.Downloaded(lease_id, (start, min(end, start + part)), 100, 10))

    def views(self, lease_ids: list[str], state: str, keep: int) -> list[LeaseView]:
        views = []
        for lease_id in dict.fromkeys(lease_ids):
            lease, said = self.leases[lease_id], self.said[lease_id]
            left = [index for index in range(lease.start, lease.end) if not said[index]]
            if state == "wanted":
                kept = [index for index in left if index not in self.unwanted[lease_id] and index % keep == 0]
            else:
                kept = []
            self.unwanted[lease_id].update(set(left) - set(kept))
            ranges = [(index, index + 1) for index in kept]
            views.append(LeaseView(lease_id=lease_id, state=state, ranges=ranges, budget_us=10**12))  # type: ignore[arg-type]
        return views

    @precondition(lambda self: self.publishing)
    @rule(
        which=st.integers(0, 1),
        state=st.sampled_from(["wanted", "wanted", "wanted", "finished", "ended"]),
        keep=st.sampled_from([1, 1, 1, 2]),
        hungry=st.booleans(),
    )
    def published(self, which: int, state: str, keep: int, hungry: bool) -> None:
        publications = self.publishing.pop(which % len(self.publishing)).publications
        lease_ids = list(dict.fromkeys(publication.lease_id for publication in publications))
        self.say(on.Published(lease_ids, self.views(lease_ids, state, keep), hungry, 100))

    @precondition(lambda self: self.beats)
    @rule(state=st.sampled_from(["wanted", "wanted", "ended"]), hungry=st.booleans(), lost=st.booleans())
    def extended(self, state: str, hungry: bool, lost: bool) -> None:
        beat = self.beats.pop()
        lease_ids = [ref.lease_id for ref in beat.leases if ref.lease_id not in self.forgotten]
        self.say(on.Extended([] if lost else self.views(lease_ids, state, 1), hungry and not lost))

    @precondition(lambda self: self.returning)
    @rule()
    def given_back(self) -> None:
        self.say(on.GivenBack([item.lease_id for item in self.returning.pop(0)]))

    @rule(us=st.sampled_from([100, 3_000, 120_000, 300_000]))
    def time_passes(self, us: int) -> None:
        self.now += us
        self.say(on.TimePassed())

    @rule(reads=st.booleans())
    def outlast(self, reads: bool) -> None:
        """Running tasks take so long that the tasks behind them are recalled."""
        for us in (120_000, 3_000):
            self.time_passes(us)
        if self.looks:
            self.check_recalls()
        for number, executor in list(self.executors.items()):
            if executor.queue:
                executor.progress()
                if reads:
                    self.read(number)

    # The end of the run.

    def teardown(self) -> None:
        self.draining = True
        self.say(on.DrainRequested())
        for _ in range(10_000):
            if self.exited:
                break
            self.step_to_the_end()
        assert self.exited
        assert self.held <= set(self.leases) - self.forgotten  # otherwise the agent would never release the payload
        for lease_id, lease in self.leases.items():
            said = self.said[lease_id]
            assert all(times == 1 for times in said.values())
            assert lease_id in self.closed
            everything = set(said) | self.unwanted[lease_id]
            assert everything >= set(range(lease.start, lease.end))

    def step_to_the_end(self) -> None:
        if self.asked:
            self.asked = 0
            self.say(on.Retrieved([]))
        elif self.downloads:
            self.downloaded_at_last()
        elif self.publishing:
            publications = self.publishing.pop(0).publications
            self.say(on.Published(list(dict.fromkeys(item.lease_id for item in publications)), [], False, 1))
        elif self.returning:
            self.say(on.GivenBack([item.lease_id for item in self.returning.pop(0)]))
        elif self.beats:
            self.beats.pop()
            self.say(on.Extended([]))
        elif any(executor.killed for executor in self.executors.values()):
            number = next(number for number, executor in self.executors.items() if executor.killed)
            self.ended(number, -signal.SIGKILL)
        elif busy := [number for number, one in self.executors.items() if one.queue or one.unread]:
            if self.executors[busy[0]].queue:
                self.executors[busy[0]].progress()
            self.read(busy[0])
        else:
            self.now += 100_000
            self.say(on.TimePassed())

    def downloaded_at_last(self) -> None:
        download = self.downloads.pop(0)
        self.held.add(download.lease.lease_id)
        self.say(on.Downloaded(download.lease.lease_id, download.tasks, 1, 1))


TestWorker = Worker.TestCase
TestWorker.settings = settings(max_examples=80, stateful_step_count=80, deadline=None)
