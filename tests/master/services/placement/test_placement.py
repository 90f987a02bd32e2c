"""Chunks go to workers that can run them, and packages that no worker can run fail or run anyway."""

from pathlib import Path
from typing import Any

import pytest

from cloudpar_master.core.turns import ALLOWANCE_US
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services import retrieval, steps
from cloudpar_master.services.package_awaits import LONELY_S
from cloudpar_master.services.placement import NAMED
from cloudpar_master.services.retrieval import UNFIT_DELAYS_S, UNFIT_ROUNDS
from cloudpar_protocol.client_messages import ListPackages, Placement
from cloudpar_protocol.payloads import TaskCode, Unfit
from cloudpar_protocol.worker_messages import ExtendLeases, GiveBack, Lease, LeaseRef, RetrieveTasks
from master.services.agent import LACKS, Agent
from support.memory import stores as memory
from support.watched_world import WatchedWorld
from support.world import POLICY, World, master, publication

LACKING = 2 * ALLOWANCE_US // POLICY.chunk_target_us
"""How many workers give a call back. If their chunks counted, they would be twice what first chunks may be ahead."""

BY_NAME: dict[str, Any] = {"code": TaskCode("0" * 64, reference="math:factorial"), "codec": "msgpack", "python": "-"}


def placement_of(world: World, account: AccountRecord, package_id: str) -> Placement:
    placement = world.status(account, package_id).placement
    assert placement is not None
    return placement


def finish(world: World, agent: Agent) -> int:
    """Run the tasks that an agent retrieves until none come, and return how many it ran."""
    tasks = 0
    while leases := agent.take(100):
        for lease in leases:
            world.publish(publication(lease), worker_id=agent.name)
            tasks += sum(end - start for start, end in lease.ranges)
    return tasks


def test_a_worker_is_handed_only_packages_of_its_pythons(world: World, ann: AccountRecord) -> None:
    old, new, both = Agent(world, "a", "3.11"), Agent(world, "b", "3.12"), Agent(world, "c", "3.11", "3.12")
    for python in ("3.11", "3.12"):
        world.start(ann, 10, python=python)
    by_name = world.start(ann, 10, **BY_NAME)
    (lease,) = both.take()
    world.publish(publication(lease), worker_id="c")
    handed = {agent.name: [lease.python for lease in agent.take(100)] for agent in (old, new)}
    assert set(handed["a"]) <= {"3.11", "-"}
    assert set(handed["b"]) <= {"3.12", "-"}
    assert by_name


@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_packages_of_two_pythons_are_done_by_two_workers(world: World, ann: AccountRecord, python: str) -> None:
    old, new = Agent(world, "a", "3.11"), Agent(world, "b", "3.12")
    packages = [world.start(ann, 10, python=python) for _ in range(5)]
    right, wrong = (old, new) if python == "3.11" else (new, old)
    assert (finish(world, wrong), finish(world, right), finish(world, wrong)) == (0, 50, 0)
    assert {world.status(ann, package_id).state for package_id in packages} == {"completed"}


def test_a_worker_of_an_earlier_release_is_handed_everything(world: World, ann: AccountRecord) -> None:
    world.start(ann, 5, python="3.12")
    (lease,) = world.retrieve()
    assert (lease.python, lease.elsewhere) == ("3.12", True)


def test_a_package_whose_python_no_worker_has_fails_after_the_grace_period(world: World, ann: AccountRecord) -> None:
    agent, package_id = Agent(world, "a"), world.start(ann, python="3.12")
    assert agent.take() == []
    world.clock.move(POLICY.grace_s - 1)
    assert agent.take() == []
    assert world.status(ann, package_id).state == "running"
    world.clock.move(2)
    assert agent.take() == []
    status = world.status(ann, package_id)
    assert (status.state, status.reason) == ("failed", "python")
    assert status.message == (
        "the package was made by Python 3.12, and no connected worker runs Python 3.12 (host-a has Python 3.11): use "
        "Python 3.11 at the client, or start workers with Python 3.12"
    )


def test_an_await_decides_about_a_package_while_workers_send_no_retrievals(world: World, ann: AccountRecord) -> None:
    busy = Agent(world, "a")
    world.start(ann, 5)
    (lease,) = busy.take()
    package_id = world.start(ann, python="3.12")
    for _ in range(3):
        world.clock.move(POLICY.grace_s - 1)
        world.extend(lease, worker_id="a")
        status = world.status(ann, package_id)
    assert (status.state, status.reason) == ("failed", "python")


def test_a_worker_that_joins_within_the_grace_period_runs_the_package(world: World, ann: AccountRecord) -> None:
    agent, package_id = Agent(world, "a"), world.start(ann, python="3.12")
    agent.take()
    world.clock.move(POLICY.grace_s - 1)
    assert finish(world, Agent(world, "b", "3.12")) == 10
    assert world.status(ann, package_id).state == "completed"


def test_the_grace_period_starts_again_when_the_last_worker_that_fits_is_gone(world: World, ann: AccountRecord) -> None:
    old, new = Agent(world, "a"), Agent(world, "b", "3.12")
    package_id = world.start(ann, python="3.12")
    old.take()
    world.clock.move(POLICY.grace_s - 1)
    new.take()  # it has a chunk, and sends no further request
    old.take()
    world.clock.move(POLICY.fleet_memory_s + 1)
    old.take()
    world.clock.move(POLICY.grace_s - 1)
    old.take()
    assert world.status(ann, package_id).state == "running"
    world.clock.move(2)
    old.take()
    assert world.status(ann, package_id).reason == "python"


def test_the_grace_period_starts_again_when_a_package_has_run_meanwhile(world: World, ann: AccountRecord) -> None:
    old, new = Agent(world, "a"), Agent(world, "b", "3.12")
    package_id = world.start(ann, python="3.12")
    old.take()
    (lease, *_) = new.take(100)  # nothing is left for the first worker
    world.publish(publication(lease), worker_id="b")
    world.clock.move(POLICY.fleet_memory_s + POLICY.grace_s + 1)
    old.take()
    assert world.status(ann, package_id).state == "running"
    world.clock.move(POLICY.grace_s + 1)
    old.take()
    assert world.status(ann, package_id).reason == "python"


def test_a_package_waits_for_a_busy_worker_that_fits(world: World, ann: AccountRecord) -> None:
    old, new = Agent(world, "a"), Agent(world, "b", "3.12")
    world.start(ann, 5, python="3.12")
    (lease,) = new.take()
    package_id = world.start(ann, python="3.12")
    for _ in range(20):
        world.clock.move(POLICY.lease_s / 2)
        world.extend(lease, worker_id="b")
        assert old.take() == []
    assert world.status(ann, package_id).state == "running"


def test_a_chunk_that_a_worker_gives_back_since_it_lacks_something_goes_to_another(
    world: World, ann: AccountRecord
) -> None:
    lacking, whole = Agent(world, "a"), Agent(world, "b")
    package_id = world.start(ann, 10)
    whole.take()  # the master knows it, and it is busy
    for lease in lacking.take():
        assert lease.elsewhere
        lacking.give_back(lease)
    assert lacking.take(100) == []
    finish(world, whole)
    world.clock.move(2 * POLICY.lease_s)
    finish(world, whole)
    status = world.status(ann, package_id)
    assert (status.state, status.progress.errors) == ("completed", 0)
    assert status.set_aside == [LACKS]
    assert status.progress.charged_us == 10 * 1_000


def test_a_package_that_no_worker_can_run_is_run_anyway(world: World, ann: AccountRecord) -> None:
    agents = [Agent(world, "a"), Agent(world, "b")]
    package_id = world.start(ann, 10)
    for agent in agents:
        (lease,) = agent.take()
        agent.give_back(lease)
    assert agents[0].take() == []  # the other one has not reported yet
    (lease,) = agents[1].take()
    assert (lease.package_id, lease.elsewhere) == (package_id, False)
    world.publish(publication(lease, outcome="error"), worker_id="b")
    assert world.status(ann, package_id).set_aside == []  # the error says what is missing


def test_a_package_that_no_worker_can_run_is_run_beside_a_long_one(world: World, ann: AccountRecord) -> None:
    agent = Agent(world, "a")
    long = world.start(ann, 1_000)
    agent.take()
    package_id = world.start(ann, 1)
    (lease,) = agent.take()
    while lease.package_id == long:
        (lease,) = agent.take()
    agent.give_back(lease)
    handed = agent.take()
    while len(handed) < 5 and handed[-1].package_id == long:
        handed += agent.take()
    assert (handed[-1].package_id, handed[-1].elsewhere) == (package_id, False)
    world.publish(publication(handed[-1], outcome="error"), worker_id="a")
    assert world.status(ann, package_id).state == "error"


def test_a_worker_that_fits_takes_over_a_package_that_the_others_ran_anyway(world: World, ann: AccountRecord) -> None:
    agents = [Agent(world, "a"), Agent(world, "b")]
    package_id = world.start(ann, 20)
    for agent in agents:
        (lease,) = agent.take()
        agent.give_back(lease)
    for agent in agents:  # each reports what it lacks
        agent.take()
    assert world.head(package_id).life.run_anyway
    fit = Agent(world, "c")
    (lease,) = fit.take()
    assert (lease.package_id, lease.elsewhere) == (package_id, True)
    for agent in agents:
        assert agent.take() == []
    fit.give_back(lease)
    (lease,) = fit.take()  # it lacks the same, so that again all of them do
    assert (lease.package_id, lease.elsewhere) == (package_id, False)


def test_all_of_many_packages_that_a_worker_cannot_run_are_decided(
    world: World, ann: AccountRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieval, "PASSED_OVER", 3)
    wrong, right = Agent(world, "a"), Agent(world, "b", "3.12")
    right.take()
    for _ in range(11):
        world.start(ann, 5, python="3.12")
    failing = [world.start(ann, 5, python="3.13") for _ in range(11)]
    for _ in range(40):
        wrong.take()
    world.clock.move(POLICY.grace_s + 1)
    right.take()
    for _ in range(40):
        wrong.take()
    assert {world.head(package_id).life.reason for package_id in failing} == {"python"}


def test_packages_of_another_python_are_looked_at_together(world: World, ann: AccountRecord) -> None:
    for _ in range(50):
        world.start(ann, 1_000, python="3.12", chunksize=1)
    watched = WatchedWorld(world)
    Agent(watched, "a").take()
    assert watched.calls.count("packages.spec") == 0
    assert watched.calls.count("packages.heads") <= 1 + 1  # to learn what all of them need, and those passed over


def test_time_that_a_task_used_before_it_met_what_the_worker_lacks_is_charged_once(
    world: World, ann: AccountRecord
) -> None:
    lacking, whole = Agent(world, "a"), Agent(world, "b")
    package_id = world.start(ann, 5)
    (lease,) = lacking.take()
    lacking.give_back(lease, used_us=7_000)
    lacking.give_back(lease, used_us=7_000)
    finish(world, whole)
    assert world.status(ann, package_id).progress.charged_us == 5 * 1_000 + 7_000


def test_chunks_that_are_passed_over_do_not_count_as_lost(world: World, ann: AccountRecord) -> None:
    wrong, right = Agent(world, "a"), Agent(world, "b", "3.12")
    right.take()
    package_id = world.start(ann, 5, python="3.12")
    for _ in range(50):
        assert wrong.take(10) == []
    (lease,) = right.take()
    assert (lease.package_id, lease.attempt) == (package_id, 1)


def test_a_worker_that_is_handed_only_unfit_chunks_waits_longer(
    world: World, ann: AccountRecord, tmp_path: Path
) -> None:
    wrong, right = Agent(world, "a"), Agent(world, "b", "3.12")
    right.take()
    world.start(ann, 500, python="3.12", chunksize=1)
    if not memory._data[tmp_path].letters.looks:
        assert [wrong.ask(3).retry_after_s for _ in range(5)] == [5.0, 10.0, 20.0, 30.0, 30.0]
        assert UNFIT_DELAYS_S == (5.0, 30.0)
        watched = WatchedWorld(world)
        wrong = Agent(watched, "d")
        wrong.ask(3)
        watched.calls.clear()
        assert wrong.ask(3).leases == []
        assert watched.calls.count("queue.receive") <= UNFIT_ROUNDS
    else:
        assert wrong.ask(3).leases == []


def test_a_call_that_workers_gave_back_is_next_again_beside_a_long_job(world: World, ann: AccountRecord) -> None:
    lacking, whole = [Agent(world, f"lacking {number}") for number in range(LACKING)], Agent(world, "whole")
    world.start(ann, 1_000)
    for _ in range(2):
        (lease,) = whole.take()
        world.publish(publication(lease), worker_id="whole")
    package_id = world.start(ann, 1)
    for agent in lacking:
        (lease,) = agent.take()
        assert lease.package_id == package_id
        agent.give_back(lease)
    (lease,) = whole.take()
    assert lease.package_id == package_id


def test_a_chunk_that_fits_is_found_behind_chunks_that_do_not(world: World, ann: AccountRecord) -> None:
    agent = Agent(world, "a")
    Agent(world, "b", "3.12").take()
    world.start(ann, 8, python="3.12", chunksize=1)
    package_id = world.start(ann, 5)
    (lease,) = agent.take()
    assert lease.package_id == package_id


def test_an_idle_worker_that_cannot_run_a_package_opens_no_window_of_it(world: World, ann: AccountRecord) -> None:
    agent = Agent(world, "a")
    package_id = world.start(ann, 1_000, python="3.12", chunksize=1)
    window = world.head(package_id).pace.window
    for _ in range(5):
        agent.take()
    assert world.head(package_id).pace.window == window


def test_an_await_counts_the_workers_and_those_that_fit(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, python="3.12")
    assert world.status(ann, package_id).placement is None
    world.clock.move(5)
    placement = placement_of(world, ann, package_id)
    assert (placement.workers, placement.fitting, placement.python) == (0, 0, "3.12")
    Agent(world, "a").take()
    placement = placement_of(world, ann, package_id)
    assert (placement.workers, placement.fitting) == (1, 0)
    assert placement.others == [Unfit("host-a", "only Python 3.11")]


def test_the_message_names_some_of_many_workers(world: World, ann: AccountRecord) -> None:
    agents = [Agent(world, f"w{number}") for number in range(NAMED + 3)]
    package_id = world.start(ann, python="3.12")
    for agent in agents * 2:
        agent.take()
    world.clock.move(POLICY.grace_s + 1)
    agents[0].take()
    assert "and 3 more" in (world.status(ann, package_id).message or "")


def test_after_a_restart_a_package_of_another_python_waits_for_workers_that_did_not_report_yet(tmp_path: Path) -> None:
    with master(tmp_path) as world:
        ann, wrong = world.account(), Agent(world, "a")
        package_id = world.start(ann, python="3.12")
        wrong.take()
        world.clock.move(POLICY.grace_s + 60)
        world.backend.registry.workers(world.clock.now())  # this call forgets all of them
        registry: Any = world.backend.registry
        registry._forgot_at = world.clock.now()
        wrong.take()
        assert world.status(ann, package_id).state == "running"
        world.clock.move(4)
        assert finish(world, Agent(world, "b", "3.12")) == 10
        assert world.status(ann, package_id).state == "completed"


def test_after_a_restart_the_master_waits_for_workers_that_it_does_not_know_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with master(tmp_path) as world:
        registry: Any = world.backend.registry
        registry._forgot_at = world.clock.now()
        ann, agent = world.account(), Agent(world, "a")
        package_id = world.start(ann)
        (lease,) = agent.take()
        agent.give_back(lease)
        assert agent.take() == []
        world.clock.move(6)
        (lease,) = agent.take()
        assert (lease.package_id, lease.elsewhere) == (package_id, False)


def test_a_package_does_not_wait_for_a_worker_that_left(world: World, ann: AccountRecord) -> None:
    agent = Agent(world, "a")
    assert agent.take() == []
    package_id = world.start(ann)
    world.clock.move(LONELY_S + 1)
    assert placement_of(world, ann, package_id).workers == 1
    world.worker.give_back(GiveBack(worker_id="a", returns=[], leaving=True))
    placement = placement_of(world, ann, package_id)
    assert (placement.workers, placement.fitting) == (0, 0)


def hungry(world: World, lease: Lease) -> bool:
    """Return whether the master wants the busy worker to give tasks back."""
    return world.worker.extend_leases(ExtendLeases(worker_id="a", leases=[LeaseRef(**lease.identity())])).hungry


def test_no_worker_gives_tasks_back_for_one_that_left(world: World, ann: AccountRecord) -> None:
    busy, idle = Agent(world, "a"), Agent(world, "b")
    world.start(ann, 5)
    (lease,) = busy.take()
    assert idle.take() == []
    assert hungry(world, lease)
    world.worker.give_back(GiveBack(worker_id="b", returns=[], leaving=True))
    assert not hungry(world, lease)


def test_an_await_shows_that_the_last_worker_of_a_package_left(world: World, ann: AccountRecord) -> None:
    agent = Agent(world, "a")
    package_id = world.start(ann, 20)
    (lease,) = agent.take()
    world.publish(publication(lease), worker_id="a")
    assert world.status(ann, package_id).progress.executors == 2
    world.clock.move(POLICY.lease_s + 1)
    world.worker.retrieve_tasks(
        RetrieveTasks(attempt_id="b", worker_id="other", executors=1, chunks=1, pythons=["3.99"])
    )
    world.extend(lease, worker_id="a")
    assert world.status(ann, package_id).progress.executors == 2
    world.worker.give_back(GiveBack(worker_id="a", returns=[], leaving=True))
    status = world.status(ann, package_id)
    assert status.placement is not None
    assert (status.progress.executors, status.placement.workers, status.placement.fitting) == (0, 1, 0)
    (summary,) = steps.finish(world.client.list_packages(ann, ListPackages())).packages
    assert summary.progress.executors == 0


@pytest.mark.parametrize("obstacle", ["a module", "a Python", "the account"])
def test_chunks_of_an_ended_package_leave_the_queue_though_no_worker_can_run_it(
    world: World, ann: AccountRecord, obstacle: str
) -> None:
    """Otherwise the master would consider itself busy until another worker comes."""
    world = World(world.backend._replace(default_account=ann.account_id), world.clock)
    account = world.account("bob") if obstacle == "the account" else ann
    agent = Agent(world, "a", own=obstacle == "the account")
    Agent(world, "b").take()
    package_id = world.start(account, 10, python="3.12" if obstacle == "a Python" else "3.11")
    if obstacle == "a module":
        (lease,) = agent.take()
        agent.give_back(lease)
    assert agent.take() == []
    assert world.backend.queue.waiting()
    world.cancel(account, package_id)
    while not world.head(package_id).life.settled:
        assert agent.take(100) == []
        world.clock.move(POLICY.lease_s / 2)
    assert world.backend.queue.waiting() == 0
