"""One zygote for each version of Python.

Both versions in these tests are the same interpreter; one of them leaves a mark in its environment. So the tests show
which zygote gets a request, and not that two versions of Python understand each other.
"""

import os
import pickle
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from selectors import DefaultSelector

import psutil
import pytest
from msgspec.structs import replace

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.shell import zygote_process
from cloudpar_worker.shell.executors import Executors
from cloudpar_worker.shell.settings import WorkerSettings
from cloudpar_worker.shell.zygote_process import ZygoteProcess
from cloudpar_worker.shell.zygotes import IDLE_US, Zygotes
from support.leases import PYTHON, lease_of
from support.running_agent import RunningAgent
from worker.scripted_master import ScriptedMaster

StartAgent = Callable[..., RunningAgent]
OTHER = "3.99"
SETTINGS = WorkerSettings(endpoint="http://127.0.0.1:1", token="t", executors=1, pythons={OTHER: sys.executable})


def script(path: Path, *lines: str) -> str:
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(stat.S_IRWXU)
    return str(path)


@pytest.fixture
def other_python(tmp_path: Path) -> str:
    return script(tmp_path / "python", f'MARK=other exec "{sys.executable}" "$@"')


def test_each_lease_runs_on_its_interpreter(master: ScriptedMaster, start_agent: StartAgent, other_python: str) -> None:
    agent = start_agent(executors=1, pythons={OTHER: other_python})
    for number, (python, mark) in enumerate([(PYTHON, None), (OTHER, "other")] * 2):
        assert len(agent.zygotes()) == (2 if number > 1 else 1)
        lease = lease_of(lambda _: os.environ.get("MARK"), 1, python=python)
        master.hand_out(lease)
        (result,) = master.wait_for_results(1, lease.package_id).values()
        assert result.data == pickle.dumps(mark, protocol=5)


@pytest.mark.parametrize("python", [PYTHON, OTHER], ids=["first version", "another version"])
def test_a_killed_zygote_is_replaced(
    master: ScriptedMaster, start_agent: StartAgent, other_python: str, python: str
) -> None:
    agent = start_agent(pythons={OTHER: other_python})
    before = agent.zygotes() if python == OTHER else set()
    for _ in range(3):
        lease = lease_of(abs, 3, python=python)
        master.hand_out(lease)
        master.wait_for_results(3, lease.package_id)
        (zygote,) = agent.zygotes() - before
        agent.kill_zygote(zygote)


def test_an_interpreter_that_does_not_start_stops_no_other_version(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    agent = start_agent(pythons={OTHER: script(tmp_path / "python", "exit 1")})
    refused, fine = lease_of(abs, 3, python=OTHER), lease_of(abs, 3)
    master.hand_out(refused, fine)
    master.wait_for_results(3, fine.package_id)
    master.wait(lambda: master.closed(refused.lease_id))
    (publication,) = [made for made in master.publications if made.lease_id == refused.lease_id]
    assert publication.refused == "python"
    agent.process.terminate()
    assert agent.wait() == 0, agent.log
    assert f"Python {OTHER} does not start" in agent.log


def test_an_interpreter_that_vanishes_ends_its_executor(other_python: str) -> None:
    heard: list[on.Stimulus] = []
    settings = replace(SETTINGS, pythons={OTHER: other_python})
    zygotes = Zygotes(settings)
    executors = Executors(zygotes, DefaultSelector(), settings, heard.append)
    Path(other_python).unlink()
    zygotes.listen(executors, [])
    executors.spawn(1, OTHER)
    executors.kill(1)
    assert heard == [on.ExecutorGone(1, None)]
    zygotes.close()


def test_an_unused_zygote_ends() -> None:
    heard: list[on.Stimulus] = []
    selector = DefaultSelector()
    zygotes = Zygotes(SETTINGS)
    executors = Executors(zygotes, selector, SETTINGS, heard.append)
    zygotes.listen(executors, [selector])

    def hear(kind: type[on.Stimulus]) -> None:
        while not any(isinstance(stimulus, kind) for stimulus in heard):
            for key, mask in selector.select():
                key.data(mask)

    executors.spawn(1, OTHER)
    hear(on.ExecutorReady)
    executors.end_idle_zygotes(0)
    executors.end_idle_zygotes(IDLE_US)
    executors.kill(1)
    hear(on.ExecutorGone)
    children = psutil.Process().children
    before = len(children())
    executors.end_idle_zygotes(2 * IDLE_US)
    executors.end_idle_zygotes(3 * IDLE_US - 1)
    assert len(children()) == before
    executors.end_idle_zygotes(3 * IDLE_US)
    assert len(children()) == before - 1
    executors.end_idle_zygotes(9 * IDLE_US)  # the zygote of the first version stays
    assert len(children()) == before - 1
    zygotes.close()


def test_an_agent_does_not_wait_for_a_zygote_with_a_long_cleanup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zygote_process, "ENDS_S", 0.1)
    busy = ZygoteProcess(script(tmp_path / "python", "exec sleep 60"), SETTINGS)
    busy.close()
    busy._process.kill()
    busy._process.wait()
