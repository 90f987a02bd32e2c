"""The operator's list of the workers."""

import pytest

from cloudpar_master.ports import AccountRecord, Fit, WorkerRecord
from cloudpar_master.services.access import Caller
from cloudpar_master.services.steps import finish
from cloudpar_master.services.worker_list import LOOKED_UP
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import ListPackages
from cloudpar_protocol.errors import Forbidden
from cloudpar_protocol.fleet_messages import ConnectedWorker, ListWorkers, ListWorkersReply, SetAside
from support.clock import NOW
from support.world import POLICY, World

from .agent import LACKS, Agent


def workers(world: World) -> list[ConnectedWorker]:
    call = world.dispatcher.enter("list_workers", Caller("admin"), codec.encode(ListWorkers()), codec.MSGPACK)
    reply = world.dispatcher.perform(call)
    assert isinstance(reply, ListWorkersReply)
    assert reply.now == world.clock.date(world.clock.now())
    return reply.workers


def lacking(world: World, account: AccountRecord) -> tuple[Agent, str]:
    """Start a package, and let a worker find that it cannot run it."""
    package_id, agent = world.start(account), Agent(world, "a")
    (lease,) = agent.take()
    agent.give_back(lease)
    return agent, package_id


def test_workers_are_listed_by_host_as_they_describe_themselves(world: World) -> None:
    Agent(world, "w2", "3.11", "3.12", host="host-b", executors=4).ask()
    Agent(world, "w1", "3.11", "3.12", host="host-a", executors=2).ask()
    now = world.clock.now()
    assert workers(world) == [
        ConnectedWorker(worker_id="w1", host="host-a", executors=2, pythons=["3.11", "3.12"], seen_at=now),
        ConnectedWorker(worker_id="w2", host="host-b", executors=4, pythons=["3.11", "3.12"], seen_at=now),
    ]


def test_people_see_by_the_machines_clock_when_a_worker_sent_its_last_request(world: World) -> None:
    Agent(world, "w").ask()
    world.clock.move(5)
    world.clock.date_ahead_s = 1e9
    (seen,) = workers(world)
    assert seen.seen_at == world.clock.date(NOW)


def test_a_worker_that_sent_no_request_for_long_is_not_listed(world: World) -> None:
    Agent(world, "w").ask()
    world.clock.move(POLICY.fleet_memory_s + 1)
    assert workers(world) == []


def test_a_worker_that_has_only_beaten_since_a_restart_is_listed_without_a_description(world: World) -> None:
    world.backend.registry.beat("w", world.clock.now())
    assert workers(world) == [ConnectedWorker(worker_id="w", seen_at=world.clock.now())]


def test_a_package_that_a_worker_is_set_aside_for_has_its_reason(world: World, ann: AccountRecord) -> None:
    agent, package_id = lacking(world, ann)
    Agent(world, "other").ask()
    agent.set_aside.append("deleted")
    agent.ask()
    found = {worker.worker_id: worker.set_aside for worker in workers(world)}
    assert found == {
        "a": [SetAside(package_id=package_id, lacks=LACKS.lacks), SetAside(package_id="deleted")],
        "other": [],
    }
    (summary,) = finish(world.client.list_packages(ann, ListPackages())).packages
    assert summary.set_aside == [LACKS]


def test_a_package_that_no_worker_can_run_names_none_of_them(world: World, ann: AccountRecord) -> None:
    agent, package_id = lacking(world, ann)
    agent.ask()
    assert world.head(package_id).life.run_anyway
    (summary,) = finish(world.client.list_packages(ann, ListPackages())).packages
    assert summary.set_aside == []


def test_the_reasons_of_the_newest_packages_are_looked_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    many = tuple(f"p{number}" for number in range(LOOKED_UP))
    for name in ("w1", "w2"):
        fit = Fit((), tuple(f"{name}-{each}" for each in many))
        world.backend.registry.note(WorkerRecord(name, world.clock.now(), "host", 1, fit))
    asked: list[str] = []

    def heads(_self: object, wanted: list[str]) -> list[object]:
        asked.extend(wanted)
        return []

    monkeypatch.setattr(type(world.backend.packages), "heads", heads)
    assert sum(len(worker.set_aside) for worker in workers(world)) == 2 * LOOKED_UP
    assert asked == [f"w1-{each}" for each in reversed(many)]


@pytest.mark.parametrize("role", ["user", "worker"])
def test_only_the_operator_sees_the_workers(world: World, ann: AccountRecord, role: str) -> None:
    caller = Caller("user", ann) if role == "user" else Caller("worker")
    with pytest.raises(Forbidden, match="admin"):
        world.dispatcher.enter(routes.LIST_WORKERS.name, caller, codec.encode(ListWorkers()), codec.MSGPACK)
