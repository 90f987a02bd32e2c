"""An agent that drains waits for what runs, and sleeps meanwhile."""

from cloudpar_protocol.payloads import TaskCode
from cloudpar_worker import stimuli as on
from worker.leases import lease_of
from worker.test_package_end import Worker


def test_a_draining_agent_sleeps_while_a_long_task_runs() -> None:
    worker = Worker(lease_of(TaskCode("0" * 64, b"code"), 1, mean_us=60_000_000))
    worker.hear(on.DrainAsked())
    worker.hear(on.TimePassed(), after_us=5_000_000)
    worker.hear(on.TimePassed())
    assert worker.state.deadline_us > worker.now
