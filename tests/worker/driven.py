"""A state machine of an agent that tests drive step by step."""

from typing import TypeVar

from cloudpar_protocol.payloads import TaskCode
from cloudpar_protocol.worker_messages import Lease, Return
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.core.state import WorkerState
from support.leases import PYTHON

CODE = TaskCode("0" * 64, b"code")

InstructionT = TypeVar("InstructionT", bound=do.Instruction)


class Worker:
    """Its executors are forked, and it has these leases. `instructions` are those after the last stimulus.

    `published_tasks` and `charged_us` are the indices and durations of all published results, in order.
    """

    def __init__(
        self, *leases: Lease, executors: int = 1, pythons: tuple[str, ...] = (PYTHON,), shared: bool = False
    ) -> None:
        self.state = WorkerState(executors=executors, memory_bytes=10**9, pythons=pythons, shared=shared)
        self.now = 1_000_000
        self.instructions: list[do.Instruction] = []
        self.published: list[tuple[str, int]] = []
        self.published_tasks: list[int] = []
        self.charged_us: list[int] = []
        self.handle(on.TimePassed())
        for number in range(executors):
            self.handle(on.ExecutorReady(number))
        self.handle(on.Retrieved(list(leases)))

    def handle(self, stimulus: on.Stimulus, after_us: int = 1_000) -> None:
        self.now += after_us
        self.instructions = self.state.handle(stimulus, self.now)

        for each in self.of(do.Publish):
            self.published += [(made.package_id, len(made.results)) for made in each.publications]
            self.published_tasks += [result.index for made in each.publications for result in made.results]
            self.charged_us += [result.duration_us for made in each.publications for result in made.results]

    @property
    def package_id(self) -> str:
        """The package of its first lease."""
        return next(iter(self.state.facts.leases.values())).lease.package_id

    def of(self, kind: type[InstructionT]) -> list[InstructionT]:
        """The last instructions of one kind."""
        return [each for each in self.instructions if isinstance(each, kind)]

    @property
    def fed(self) -> list[tuple[int, str]]:
        """Executor and lease of the last instructions to feed."""
        return [(feed.executor_id, feed.lease.lease_id) for feed in self.of(do.Feed)]

    @property
    def returned(self) -> list[Return]:
        """What the last instructions give back."""
        return [item for give_back in self.of(do.GiveBackTasks) for item in give_back.returns]

    def done(self, index: int, executor_id: int = 0) -> None:
        self.handle(on.Results(executor_id, [ExecutorResult(index, "ok", 1_000, b"")], self.now))
