"""A real agent with a scripted master: leases, beats, give-backs, drain, and the deaths of processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode
from cloudpar_protocol.worker_messages import LeaseView
from cloudpar_worker.shell.agent import Agent
from support.leases import code_of, data_blob, lease_of
from support.running_agent import RunningAgent
from support.waiting import HANG_S, until
from worker.agent_killer import end_agent
from worker.scripted_master import ScriptedMaster

StartAgent = Callable[..., RunningAgent]


def gate(path: Path) -> Callable[[int], int]:
    """A task that waits until the test removes a file."""

    def wait(number: int, name: str = str(path)) -> int:
        while os.path.exists(name):  # noqa: PTH110 - a task, which imports little
            time.sleep(0.001)
        return number

    path.touch()
    return wait


def asked(master: ScriptedMaster, route: str) -> int:
    return sum(1 for _, name, _ in list(master.requests) if name == route)


def test_a_chunk_is_run_and_closed_in_few_requests(master: ScriptedMaster, start_agent: StartAgent) -> None:
    start_agent()
    lease = lease_of(lambda number: number, 1000)
    master.hand_out(lease)
    master.wait_for_results(1000)
    master.wait(lambda: master.closed(lease.lease_id))
    assert asked(master, "publish_results") < 10
    sequence = [publication.seq for publication in master.publications]
    assert sequence == list(range(len(sequence)))


def test_an_agent_that_a_task_kills_had_announced_that_it_was_ready(
    master: ScriptedMaster, start_agent: StartAgent
) -> None:
    """The parent process knows that the agent could work, although the first task killed it at once."""

    master.hand_out(lease_of(end_agent, 1))
    agent = start_agent(executors=16)
    assert agent.wait() == -signal.SIGKILL
    assert not agent.stdout.read()


def test_leases_are_extended_while_they_run(master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path) -> None:
    start_agent()
    block = tmp_path / "block"
    lease = lease_of(gate(block), 2, lease_s=0.3)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 3)
    block.unlink()
    master.wait_for_results(2)


def test_data_and_code_come_from_blobs(master: ScriptedMaster, start_agent: StartAgent) -> None:
    values = [b"x" * (4_000_000 if number >= 290 else 1_000) for number in range(300)]
    body, blob = data_blob(values, "data")
    code = code_of(len)
    assert code.inline is not None
    master.blobs = {"data": body, "code": code.inline}
    stored = TaskCode(code.hash, blob=BlobRef("code", len(code.inline)))
    start_agent()
    for start, end in ((0, 7), (100, 110), (290, 300)):
        master.hand_out(
            lease_of(
                stored,
                end - start,
                start=start,
                tasks=300,
                package_id="p",
                data=BlobData(blob),
                code_link=Link("GET", f"{master.endpoint}/blob/code"),
                data_link=Link("GET", f"{master.endpoint}/blob/data"),
            )
        )
    results = master.wait_for_results(27)
    assert all(result.outcome == "ok" for result in results.values())


def test_a_lease_whose_payload_is_gone_expires(master: ScriptedMaster, start_agent: StartAgent) -> None:
    agent = start_agent()
    _, blob = data_blob([1], "gone")
    master.hand_out(lease_of(abs, 1, data=BlobData(blob), data_link=Link("GET", f"{master.endpoint}/blob/gone")))
    fine = lease_of(abs, 1)
    master.hand_out(fine)
    master.wait(lambda: master.closed(fine.lease_id))
    until(lambda: "cannot download the payload of package" in agent.log)
    agent.process.terminate()
    assert agent.wait() == 0


def test_a_cancelled_package_is_stopped_and_charged(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent()
    block = tmp_path / "block"
    lease = lease_of(gate(block), 10, lease_s=0.3)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    master.set(views={lease.lease_id: LeaseView(lease_id=lease.lease_id, state="ended")})
    master.wait(lambda: master.closed(lease.lease_id))
    results = master.results()
    assert [result.outcome for result in results.values()] == ["cancelled"] * 2
    assert all(result.duration_us >= 50_000 for result in results.values())


def test_a_cancelled_task_is_stopped_and_the_others_go_on(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent(executors=1)
    block = tmp_path / "block"
    lease = lease_of(gate(block), 4, lease_s=0.3, budget_us=10**12)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    view = LeaseView(lease_id=lease.lease_id, state="wanted", ranges=[(1, 2), (3, 4)], budget_us=10**12)
    master.set(views={lease.lease_id: view})
    master.wait(lambda: 0 in master.results())
    block.unlink()
    master.wait(lambda: master.closed(lease.lease_id))
    assert {index: result.outcome for index, result in master.results().items()} == {0: "cancelled", 1: "ok", 3: "ok"}


def test_slow_untouched_tasks_are_given_back_for_idle_workers(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent(executors=1)
    block = tmp_path / "block"
    lease = lease_of(gate(block), 9, lease_s=0.3, mean_us=1_000_000)
    master.set(hungry=True)
    master.hand_out(lease)
    master.wait(lambda: len(master.returns) >= 2)
    master.set(hungry=False)
    block.unlink()
    master.wait(lambda: master.closed(lease.lease_id))
    assert master.returns[0].ranges == [(5, 9)]
    assert master.returns[1].ranges == [(3, 5)]
    returned = {index for item in master.returns for start, end in item.ranges for index in range(start, end)}
    assert sorted([*returned, *master.results()]) == list(range(9))


def test_tasks_behind_a_long_task_run_in_another_executor(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent()
    block = tmp_path / "block"
    wait = gate(block)

    def mostly_short(number: int) -> int:
        return wait(number) if number == 40 else number

    lease = lease_of(mostly_short, 400, mean_us=500)
    master.hand_out(lease)
    results = master.wait_for_results(399)
    assert 40 not in results
    block.unlink()
    assert 40 in master.wait_for_results(400)
    assert len([result for publication in master.publications for result in publication.results]) == 400


def test_sigterm_drains_the_agent(master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path) -> None:
    agent = start_agent()
    block = tmp_path / "block"
    lease = lease_of(gate(block), 10, mean_us=10**6)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    agent.process.terminate()
    master.wait(lambda: bool(master.returns))
    assert master.returns[0].ranges == [(2, 10)]
    retrievals = asked(master, "retrieve_tasks")
    later = lease_of(abs, 1)
    master.hand_out(later)
    block.unlink()
    assert agent.wait() == 0, agent.log
    assert sorted(master.results()) == [0, 1]
    assert master.closed(lease.lease_id)
    assert asked(master, "retrieve_tasks") == retrievals
    assert list(master.leases) == [later]


def test_an_idle_agent_drains_at_once(master: ScriptedMaster, start_agent: StartAgent) -> None:
    agent = start_agent()
    master.wait(lambda: asked(master, "retrieve_tasks") == 1)
    family = agent.descendants()
    agent.process.terminate()
    assert agent.wait() == 0, agent.log
    assert not psutil.wait_procs(family, timeout=HANG_S)[1]
    assert not agent.log


def test_sigint_ends_the_agent_at_once(master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path) -> None:
    agent = start_agent()
    master.hand_out(lease_of(gate(tmp_path / "block"), 2, lease_s=0.3))
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    family = agent.descendants()
    agent.process.send_signal(signal.SIGINT)
    assert agent.wait() == 130
    assert not psutil.wait_procs(family, timeout=HANG_S)[1]


def _hang_with_children(number: int) -> None:
    import ctypes

    subprocess.Popen(["sleep", "1000"])
    Path(os.environ["TMPDIR"], f"started-{number}").touch()
    ctypes.PyDLL(None).sleep(1000)


@pytest.mark.parametrize("end", ["kill", "close_stdin"])
def test_no_process_outlives_the_agent(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path, end: str
) -> None:
    agent = start_agent(tmp=str(tmp_path))
    master.hand_out(lease_of(_hang_with_children, 2, lease_s=0.3))
    master.wait(lambda: len(list(tmp_path.glob("started-*"))) == 2)
    family = agent.descendants()
    assert len(family) >= 5
    if end == "kill":
        agent.process.kill()
    else:
        agent.stdin.close()
    assert agent.wait() != 0
    assert not psutil.wait_procs(family, timeout=HANG_S)[1]


def test_no_result_is_lost_while_the_master_is_away(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    agent = start_agent()
    block = tmp_path / "block"
    lease = lease_of(gate(block), 2, lease_s=0.3)
    master.hand_out(lease)
    master.wait(lambda: asked(master, "extend_leases") >= 1)
    master.set(away=True)
    block.unlink()
    until(lambda: "does not answer" in agent.log)
    assert not master.results()
    master.set(away=False)
    assert len(master.wait_for_results(2)) == 2
    master.wait(lambda: master.closed(lease.lease_id))
    agent.process.terminate()
    assert agent.wait() == 0
    assert "answers again" in agent.log


def test_a_publication_that_is_refused_does_not_take_others_with_it(
    master: ScriptedMaster, start_agent: StartAgent
) -> None:
    bad = lease_of(abs, 1)

    def refusal(route: str, request: Any) -> BadRequest | None:
        if route == "publish_results" and any(item.lease_id == bad.lease_id for item in request.publications):
            return BadRequest("what is that?")
        return None

    master.set(refuse=refusal)
    agent = start_agent()
    good = lease_of(abs, 1)
    master.hand_out(bad, good)
    master.wait(lambda: master.closed(good.lease_id))
    agent.process.terminate()
    assert agent.wait() == 0
    assert "what is that?" in agent.log


@pytest.mark.parametrize(("refusals", "outcome"), [(2, "ok"), (3, "lost")])
def test_an_upload_that_is_refused_gets_another_link(
    master: ScriptedMaster, start_agent: StartAgent, refusals: int, outcome: str
) -> None:
    master.set(refused_uploads=refusals)
    start_agent()
    master.hand_out(lease_of(lambda _number: b"x" * 10**6, 1))
    (result,) = master.wait_for_results(1).values()
    assert result.outcome == outcome
    assert asked(master, "prepare_results") == 3


def test_a_wrong_token_ends_the_agent(master: ScriptedMaster, start_agent: StartAgent) -> None:
    agent = start_agent(token="wrong", ready=False)
    assert agent.wait() == 3
    assert "worker token" in agent.log


def test_the_agent_waits_for_an_unreachable_master(start_agent: StartAgent, master: ScriptedMaster) -> None:
    agent = start_agent(endpoint="http://127.0.0.1:9")
    agent.process.terminate()
    assert agent.wait() == 0


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (b'{"endpoint": "http://127.0.0.1:1"}', b"token"),
        (
            b'{"endpoint": "http://127.0.0.1:1", "token": "t", "executors": 1, "pythons": {"3.99": "/x"}}',
            b"Python 3.99",
        ),
    ],
    ids=["a field", "an interpreter"],
)
def test_settings_that_lack_something_are_refused(settings: bytes, named: bytes) -> None:
    command = [sys.executable, "-m", "cloudpar_worker", "--stdin"]
    done = subprocess.run(command, input=settings + b"\n", capture_output=True, check=False)
    assert done.returncode == 2
    assert named in done.stderr


def test_an_executor_that_leaks_is_replaced_between_tasks(master: ScriptedMaster, start_agent: StartAgent) -> None:
    start_agent(executors=1, memory_mb=200)

    def leak(_number: int) -> int:
        sys.leaked = [*getattr(sys, "leaked", []), b"x" * 13 * 10**7]  # type: ignore[attr-defined]
        end = time.monotonic() + 1.0  # long enough for a measurement
        while time.monotonic() < end:
            pass
        return os.getpid()

    master.hand_out(lease_of(leak, 3))
    results = master.wait_for_results(3)
    assert {result.outcome for result in results.values()} == {"ok"}
    assert len({result.data for result in results.values()}) > 1


def test_the_environment_of_tasks_has_no_cloudpar_variables(master: ScriptedMaster, start_agent: StartAgent) -> None:
    start_agent(environment={"CLOUDPAR_TOKEN": "secret", "OTHER": "kept"})
    master.hand_out(lease_of(lambda _number: sorted(os.environ), 1))
    (result,) = master.wait_for_results(1).values()
    assert b"OTHER" in (result.data or b"")
    assert b"CLOUDPAR" not in (result.data or b"")


NO_WATCHES = """
import errno, os, selectors, sys
if hasattr(selectors, "EpollSelector"):
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    selectors.EpollSelector.register = full
"""
"""A sitecustomize: the kernel has no watch of epoll left for this user."""


def test_a_worker_works_when_tasks_have_used_up_the_watches_of_its_user(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    """The kernel counts the watches of epoll for each user, and executors may share the agent's user."""
    (tmp_path / "sitecustomize.py").write_text(NO_WATCHES)
    agent = start_agent(environment={"PYTHONPATH": str(tmp_path)})
    for zygote in agent.zygotes():
        agent.kill_zygote(zygote)
    master.hand_out(lease_of(lambda number: number, 10))
    master.wait_for_results(10)


def test_a_run_that_cannot_be_sent_ends_its_executor_and_not_the_agent() -> None:
    """For example, the agent has no memory for the copy of a large item that goes to the executor."""

    def no_memory(*_: object) -> None:
        raise MemoryError

    killed: list[int] = []
    payloads = SimpleNamespace(code=lambda _: b"", items=lambda *_: None)
    agent: Any = SimpleNamespace(
        _unready=0,
        _master_io=SimpleNamespace(payloads=payloads),
        _executors=SimpleNamespace(feed=no_memory, kill=killed.append),
    )
    Agent._feed(agent, 7, lease_of(abs, 1), (0, 1))
    assert killed == [7]
