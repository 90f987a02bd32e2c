"""What a worker does when a package ends: for good, or only here."""

from cloudpar_protocol.payloads import TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Lease, LeaseView
from cloudpar_worker import instructions as do
from cloudpar_worker import stimuli as on
from cloudpar_worker.state import WorkerState
from worker.leases import lease_of

CODE = TaskCode("0" * 64, b"code")


class Worker:
    """One executor's state machine, with the instructions that it gave last."""

    def __init__(self, *leases: Lease) -> None:
        self.state = WorkerState(executors=1, memory_bytes=10**9, python=leases[0].python)
        self.now = 1_000_000
        self.told: list[do.Instruction] = []
        self.published: list[tuple[str, int]] = []
        self.hear(on.TimePassed())
        self.hear(on.ExecutorForked(0))
        self.hear(on.Retrieved(list(leases)))

    def hear(self, stimulus: on.Stimulus, after_us: int = 1_000) -> None:
        self.now += after_us
        self.told = self.state.handle(stimulus, self.now)

        for each in self.told:
            if isinstance(each, do.Publish):
                self.published += [(made.package_id, len(made.results)) for made in each.publications]

    def done(self, index: int) -> None:
        self.hear(on.Results(0, [TaskResult(index, "ok", 1_000, b"")], self.now))


def test_what_ended_for_one_lease_has_ended_for_all_of_its_package() -> None:
    first = lease_of(CODE, 1, mean_us=1_000)
    second = lease_of(CODE, 10_000, package_id=first.package_id, start=1)
    worker = Worker(first, second)
    worker.done(0)
    assert worker.state.facts.leases[second.lease_id].untouched
    worker.hear(on.Extended([LeaseView(lease_id=first.lease_id, state="ended")], False))
    assert not worker.state.facts.leases[second.lease_id].untouched
    assert do.Kill(0) in worker.told  # it had begun a task of the second lease


def test_a_packages_last_results_here_do_not_wait_for_other_packages() -> None:
    short, long = lease_of(CODE, 2, mean_us=1_000), lease_of(CODE, 100, mean_us=60_000)
    worker = Worker(short, long)
    worker.done(0)
    assert worker.published == []
    worker.done(1)
    worker.hear(on.TimePassed())
    assert worker.published == [(short.package_id, 2)]


def test_results_wait_for_company_while_more_of_their_package_is_here() -> None:
    first = lease_of(CODE, 2, mean_us=60_000)
    second = lease_of(CODE, 100, package_id=first.package_id, start=2, mean_us=60_000)
    worker = Worker(first, second)
    worker.done(0)
    worker.done(1)
    worker.hear(on.TimePassed())
    assert worker.published == []
    worker.hear(on.TimePassed(), after_us=200_000)
    assert worker.published == [(first.package_id, 2)]
