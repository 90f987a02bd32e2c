"""A child process: what it receives, how it ends, and what happens when it dies."""

import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from queue import SimpleQueue

import psutil
import pytest

from cloudpar._local.child import Child, Event
from cloudpar._local.restart_policy import MOST, RestartPolicy

STUB = """
import json, os, signal, sys
folder = sys.argv[1]
line = sys.stdin.readline()
with open(os.path.join(folder, "lines"), "a") as file:
    file.write(line)
if sys.argv[3].startswith("ready"):
    print('{"event":"ready"}', flush=True)
if sys.argv[3] == "forking" and os.fork() == 0:
    with open(os.path.join(folder, "forked"), "a") as file:
        file.write(f"{os.getpid()} ")
    os.write(int(sys.argv[2]), b"f")
    signal.pause()
os.write(int(sys.argv[2]), b"x")
if sys.argv[3] in {"deaf", "draining"}:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(int(sys.argv[2]), b"y")
if sys.argv[3] == "deaf":
    signal.pause()
if sys.argv[3].endswith("dying"):
    print("these are its last words", file=sys.stderr)
    sys.exit(3)
sys.stdin.read()
"""


class Started:
    """A stub, and the pipe by which it reports that it is up."""

    def __init__(self, folder: Path, behaviour: str, policy: RestartPolicy) -> None:
        (folder / "stub_of_a_child.py").write_text(STUB)
        self.reader, writer = os.pipe()
        self.events: SimpleQueue[Event] = SimpleQueue()
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(folder)}
        self.child = Child(
            "stub", ["stub_of_a_child", str(folder), str(writer), behaviour], {"a": 1}, self.events.put,
            policy=policy, pass_fds=(writer,), environment=environment, log_path=folder / "log",
        )  # fmt: skip
        self.child.start()
        self.writer = writer

    def next(self) -> tuple[str, int]:
        """Return the next event and its exit status."""
        what, name, code = self.events.get(timeout=60)
        assert name == "stub"
        return what, code

    def wait(self, signs: int = 1) -> None:
        for _ in range(signs):
            assert os.read(self.reader, 1)

    def kill(self) -> None:
        """Kill it, like a task that kills its worker."""
        assert self.child.pid is not None
        os.kill(self.child.pid, signal.SIGKILL)

    def close(self) -> None:
        self.child.stop()
        self.child.join()
        os.close(self.reader)
        os.close(self.writer)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    all_started: list[Started] = []

    def start(behaviour: str, *, runs_tasks: bool = False, must_start: bool = False) -> Started:
        policy = RestartPolicy(runs_tasks=runs_tasks, must_start=must_start)
        all_started.append(Started(tmp_path, behaviour, policy))
        return all_started[-1]

    yield start
    for started in all_started:
        started.close()


def test_a_child_receives_one_line_and_ends_when_asked(start: Callable[..., Started], tmp_path: Path) -> None:
    started = start("good")
    started.wait()
    process = psutil.Process(started.child.pid)
    assert os.getsid(process.pid) == process.pid, "Ctrl-C at the terminal must not reach it"
    assert started.child.exit_code is None
    started.child.stop()
    started.child.join()
    assert not process.is_running()
    assert json.loads((tmp_path / "lines").read_text()) == {"a": 1}
    assert started.next()[0] == "ended"


def test_a_child_that_drains_ends_at_once_when_it_is_stopped(start: Callable[..., Started]) -> None:
    started = start("draining")
    started.wait(2)
    started.child.drain()
    started.child.stop()
    assert started.next() == ("ended", 0), "its standard input ended"


def test_a_child_that_dies_while_it_drains_is_not_started_again(start: Callable[..., Started]) -> None:
    started = start("draining")
    started.wait(2)
    started.child.drain()
    started.kill()
    assert started.next() == ("ended", -signal.SIGKILL)


def test_a_child_that_is_killed_is_started_again(start: Callable[..., Started], tmp_path: Path) -> None:
    started = start("good")
    started.wait()
    started.kill()
    started.wait()
    assert (tmp_path / "lines").read_text().count("\n") == 2
    assert started.next() == ("restarting", -signal.SIGKILL)


def test_a_child_that_is_killed_is_started_again_while_its_own_child_hangs(
    start: Callable[..., Started], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a stopped zygote, which keeps the standard output of its agent open."""
    monkeypatch.setattr("cloudpar._local.child.LAST_LINES_S", 0.01)
    started = start("forking")
    started.wait(2)
    started.kill()
    started.wait(2)
    for pid in (tmp_path / "forked").read_text().split():
        os.kill(int(pid), signal.SIGKILL)


def test_an_agent_that_tasks_kill_is_started_again_and_again(start: Callable[..., Started]) -> None:
    started = start("ready", runs_tasks=True)
    for _ in range(2 * MOST):
        assert started.next() == ("ready", 0)
        started.kill()
        assert started.next() == ("restarting", -signal.SIGKILL)
    assert started.next() == ("ready", 0)


@pytest.mark.parametrize(("behaviour", "runs_tasks"), [("ready", False), ("good", True)])
def test_a_child_that_no_task_killed_is_not_started_without_end(
    start: Callable[..., Started], behaviour: str, runs_tasks: bool
) -> None:
    """This is the master, or an agent that could not have run a task yet."""
    started = start(behaviour, runs_tasks=runs_tasks)
    for _ in range(MOST):
        started.wait()
        started.kill()
    assert last(started) == ("ended", -signal.SIGKILL)


@pytest.mark.parametrize("behaviour", ["dying", "ready, and dying"])
def test_a_child_that_keeps_dying_leaves_its_last_words(
    start: Callable[..., Started], tmp_path: Path, behaviour: str
) -> None:
    started = start(behaviour, runs_tasks=True)
    assert last(started) == ("ended", 3)
    assert (tmp_path / "log").read_text() == "these are its last words\n" * MOST


def test_a_child_that_must_start_dies_once(start: Callable[..., Started], tmp_path: Path) -> None:
    assert start("dying", must_start=True).next() == ("ended", 3)
    assert last(start("ready, and dying", must_start=True)) == ("ended", 3)
    assert (tmp_path / "log").read_text().count("\n") == 1 + MOST


def last(started: Started) -> tuple[str, int]:
    """Return the last event."""
    while (happened := started.next())[0] != "ended":
        pass
    return happened


def test_a_child_that_ignores_the_signal_is_killed(
    start: Callable[..., Started], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cloudpar._local.child.STOP_S", 0.1)
    started = start("deaf")
    started.wait(2)
    process = psutil.Process(started.child.pid)
    started.child.stop()
    started.child.join()
    assert not process.is_running()
