"""Fixtures: a scripted master, and agents that call it."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.running_agent import RunningAgent
from worker.scripted_master import ScriptedMaster


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """A folder that other users may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="cloudpar-tests-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def shared_master() -> Iterator[ScriptedMaster]:
    master = ScriptedMaster()
    yield master
    master.close()


@pytest.fixture(scope="module")
def _shared_agent(shared_master: ScriptedMaster) -> Iterator[RunningAgent]:
    agent = RunningAgent(shared_master.endpoint)
    yield agent.wait_until_ready()
    agent.close()


@pytest.fixture
def pool(shared_master: ScriptedMaster, _shared_agent: RunningAgent) -> ScriptedMaster:
    """A master with an agent of two executors that is ready; the tests of a module share it."""
    return shared_master


@pytest.fixture
def master() -> Iterator[ScriptedMaster]:
    """A master for this test alone."""
    master = ScriptedMaster()
    yield master
    master.close()


@pytest.fixture
def start_agent(master: ScriptedMaster) -> Iterator[Callable[..., RunningAgent]]:
    """Start agents for this test alone."""
    agents: list[RunningAgent] = []

    def start(*, ready: bool = True, **settings: object) -> RunningAgent:
        agents.append(RunningAgent(**({"endpoint": master.endpoint} | settings)))  # type: ignore[arg-type]
        return agents[-1].wait_until_ready() if ready else agents[-1]

    yield start
    for agent in agents:
        agent.close()
