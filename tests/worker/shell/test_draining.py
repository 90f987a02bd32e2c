"""A draining agent waits without limit for running tasks, but not for the master."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.decisions import GIVE_UP_US
from support.leases import lease_of
from support.running_agent import RunningAgent
from worker.driven import CODE, Worker
from worker.scripted_master import ScriptedMaster
from worker.shell.test_agent import asked, gate

IMPATIENT = """
import sys
from cloudpar_worker import __main__
from cloudpar_worker.core import decisions
decisions.GIVE_UP_US = 200_000
sys.exit(__main__.main())
"""


def draining(*, done: bool) -> Worker:
    """A draining worker whose only task runs, or is done with its publication under way."""
    worker = Worker(lease_of(CODE, 1, mean_us=60_000_000))
    worker.handle(on.DrainRequested())
    if done:
        worker.done(0)
        assert worker.published == [(worker.package_id, 1)]
    return worker


def test_a_draining_agent_sleeps_while_a_long_task_runs() -> None:
    worker = draining(done=False)
    worker.handle(on.TimePassed(), after_us=5_000_000)
    worker.handle(on.TimePassed())
    assert worker.state.deadline_at_us > worker.now


def test_a_draining_agent_gives_up_after_a_minute_without_success() -> None:
    worker = draining(done=True)
    for passed_us in (1, GIVE_UP_US // 2, GIVE_UP_US - 1):
        worker.handle(on.RequestFailed(passed_us), after_us=GIVE_UP_US // 2 - 1)
        assert worker.of(do.Exit) == []
    worker.handle(on.RequestFailed(GIVE_UP_US))
    ((left,),) = [end.left for end in worker.of(do.Exit)]
    assert (left.lease.package_id, left.unpublished) == (worker.package_id, 1)


def test_the_minute_to_give_up_starts_after_the_last_task() -> None:
    worker = draining(done=False)
    worker.handle(on.RequestFailed(GIVE_UP_US), after_us=GIVE_UP_US)
    worker.handle(on.RequestFailed(2 * GIVE_UP_US), after_us=GIVE_UP_US)
    worker.done(0)
    worker.handle(on.RequestFailed(3 * GIVE_UP_US), after_us=GIVE_UP_US // 2)
    assert worker.of(do.Exit) == []
    worker.handle(on.RequestFailed(3 * GIVE_UP_US), after_us=GIVE_UP_US // 2)
    assert worker.of(do.Exit)


def test_a_draining_agent_does_not_give_up_while_no_request_fails() -> None:
    """The upload of a large result may take longer."""
    worker = draining(done=True)
    worker.handle(on.TimePassed(), after_us=10 * GIVE_UP_US)
    assert worker.of(do.Exit) == []
    worker.handle(on.Published([lease.lease.lease_id for lease in worker.state.facts.leases.values()], [], False, 1))
    assert worker.of(do.Exit) == [do.Exit([])]


def test_an_agent_that_does_not_drain_never_gives_up() -> None:
    worker = Worker(lease_of(CODE, 1))
    worker.done(0)
    worker.handle(on.RequestFailed(10 * GIVE_UP_US), after_us=10 * GIVE_UP_US)
    assert worker.of(do.Exit) == []


@pytest.mark.parametrize("returns", [False, True])
def test_the_agent_logs_the_results_that_it_leaves(
    master: ScriptedMaster, start_agent: Callable[..., RunningAgent], tmp_path: Path, returns: bool
) -> None:
    agent = start_agent(command=["-c", IMPATIENT, "--stdin"])
    block = tmp_path / "block"
    lease = lease_of(gate(block), 5 if returns else 2, lease_s=0.3, mean_us=10**6)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    master.set(away=True)
    agent.process.terminate()
    master.wait(lambda: master.refused >= 5)
    assert agent.process.poll() is None
    block.unlink()
    assert agent.wait() == 4
    assert f"left unpublished: 2 results of package {lease.package_id}" in agent.log
