"""A process that the pool starts: what it is told, how it ends, and what happens when it dies."""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from cloudpar._local.child import Child
from cloudpar._local.restart_policy import MOST
from cloudpar.errors import LocalClusterFailed

STUB = """
import json, os, signal, sys
folder = sys.argv[1]
line = sys.stdin.readline()
with open(os.path.join(folder, "told"), "a") as file:
    file.write(line)
if sys.argv[3].startswith("ready"):
    print('{"event":"ready"}', flush=True)
os.write(int(sys.argv[2]), b"x")
if sys.argv[3] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.write(int(sys.argv[2]), b"y")
    signal.pause()
if sys.argv[3].endswith("dying"):
    print("these are its last words", file=sys.stderr)
    sys.exit(3)
sys.stdin.read()
"""


class Started:
    """A stub, and the pipe by which it says that it is up."""

    def __init__(self, folder: Path, behaviour: str, *, runs_tasks: bool = False) -> None:
        (folder / "stub_of_a_child.py").write_text(STUB)
        self.reader, writer = os.pipe()
        self.failure: LocalClusterFailed | None = None
        self.failed = threading.Event()
        environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(folder)}
        self.child = Child(
            "stub", ["stub_of_a_child", str(folder), str(writer), behaviour], {"a": 1}, folder,
            gave_up=self._gave_up, pass_fds=(writer,), environment=environment, runs_tasks=runs_tasks,
        )  # fmt: skip
        self.child.start()
        self.writer = writer

    def _gave_up(self, error: LocalClusterFailed) -> None:
        self.failure = error
        self.failed.set()

    def wait(self, signs: int = 1) -> None:
        for _ in range(signs):
            assert os.read(self.reader, 1)

    def kill(self) -> None:
        """As a task does that takes its worker along."""
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

    def begin(behaviour: str, *, runs_tasks: bool = False) -> Started:
        all_started.append(Started(tmp_path, behaviour, runs_tasks=runs_tasks))
        return all_started[-1]

    yield begin
    for started in all_started:
        started.close()


def test_it_is_told_one_line_and_ends_when_asked(start: Callable[..., Started], tmp_path: Path) -> None:
    started = start("good")
    started.wait()
    process = psutil.Process(started.child.pid)
    assert os.getsid(process.pid) == process.pid, "Ctrl-C at the terminal is not for it"
    started.child.stop()
    started.child.join()
    assert not process.is_running()
    assert json.loads((tmp_path / "told").read_text()) == {"a": 1}


def test_one_that_is_killed_is_started_again(
    start: Callable[..., Started], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "cloudpar")
    started = start("good")
    started.wait()
    started.kill()
    started.wait()
    assert (tmp_path / "told").read_text().count("\n") == 2
    assert "the pool's stub ended (killed by SIGKILL); starting it again" in caplog.text


def test_one_that_tasks_take_along_is_started_again_and_again(start: Callable[..., Started]) -> None:
    started = start("ready", runs_tasks=True)
    for _ in range(2 * MOST):
        started.wait()
        started.kill()
    started.wait()
    assert started.failure is None


@pytest.mark.parametrize(("behaviour", "runs_tasks"), [("ready", False), ("good", True)])
def test_one_that_no_task_took_along_is_given_up(
    start: Callable[..., Started], behaviour: str, runs_tasks: bool
) -> None:
    """The master; and a worker that could not take a task yet."""
    started = start(behaviour, runs_tasks=runs_tasks)
    for _ in range(MOST):
        started.wait()
        started.kill()
    assert started.failed.wait(60)
    assert "keeps dying (killed by SIGKILL)" in str(started.failure)


@pytest.mark.parametrize("behaviour", ["dying", "ready, and dying"])
def test_one_that_keeps_dying_is_given_up_with_its_last_words(start: Callable[..., Started], behaviour: str) -> None:
    started = start(behaviour, runs_tasks=True)
    assert started.failed.wait(60)
    assert "keeps dying (exit status 3)" in str(started.failure)
    assert str(started.failure).endswith("these are its last words")


def test_one_that_does_not_listen_is_killed(start: Callable[..., Started], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar._local.child.STOP_S", 0.1)
    started = start("deaf")
    started.wait(2)
    process = psutil.Process(started.child.pid)
    started.child.stop()
    started.child.join()
    assert not process.is_running()


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    """Whatever kills this process, the end of standard input reaches the child."""
    script = f"""
import os, sys
sys.path[:0] = {[entry for entry in sys.path if entry]!r}
from pathlib import Path
from sdk.local.test_child import Started
started = Started(Path({str(tmp_path)!r}), "good")
started.wait()
print(started.child.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    reader, writer = os.pipe()
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-c", script], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, writer, 1)]
    )
    os.close(writer)
    with os.fdopen(reader) as output:
        child = psutil.Process(int(output.readline()))
        os.waitpid(pid, 0)
        psutil.wait_procs([child], timeout=30)
    assert not child.is_running()
