from __future__ import annotations

import pickle
import random
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from cloudpar.effects import capture

if TYPE_CHECKING:
    from collections.abc import Callable


class ParallelFor(Protocol):
    def __call__(
        self, start: int, stop: int, body: Callable[[int], object], *, executors: int = 3, seed: int = 0
    ) -> None: ...


@pytest.fixture(scope="session")
def parallel_for() -> ParallelFor:
    """Runs tasks in shuffled order on several loaded copies of the task code, and merges them in another order."""

    def run(start: int, stop: int, body: Callable[[int], object], *, executors: int = 3, seed: int = 0) -> None:
        shuffle = random.Random(seed).shuffle
        captured = capture(body)
        code = pickle.dumps(captured.code)
        loaded: list[Any] = [pickle.loads(code) for _ in range(executors)]
        indexes = list(range(start, stop))
        shuffle(indexes)
        answers = [(index, loaded[turn % executors](index)) for turn, index in enumerate(indexes)]
        shuffle(answers)
        merge = captured.merge()
        for index, writes in pickle.loads(pickle.dumps(answers)):
            merge.add(index, writes)
        merge.commit()

    return run


_WORKER = """
import pickle, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cloudpar", "cloudpar_protocol"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.path.append(sys.argv[1])
try:
    import cloudpar
except ModuleNotFoundError:
    code, indexes = pickle.load(sys.stdin.buffer)
    answers = [(index, code(index)) for index in indexes]
    assert not [name for name in sys.modules if name.startswith("cloudpar")]
    sys.stdout.buffer.write(pickle.dumps((answers, "numpy" in sys.modules)))
"""


@pytest.fixture(scope="session")
def worker_command() -> list[str]:
    """Return a command that reads `(code, indexes)` and runs the tasks, where `cloudpar` cannot be imported."""
    # -S: without the site module, no path file makes an editable install importable.
    return [sys.executable, "-I", "-S", "-W", "error", "-c", _WORKER, sysconfig.get_path("purelib")]


@pytest.fixture(scope="session")
def elsewhere(worker_command: list[str]) -> Callable[[Any, list[int]], tuple[list[tuple[int, bytes | None]], bool]]:
    """Run task code in a process without cloudpar; return the answers, and whether NumPy was imported there."""

    def run(code: Any, indexes: list[int]) -> tuple[list[tuple[int, bytes | None]], bool]:
        done = subprocess.run(worker_command, input=pickle.dumps((code, indexes)), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        answers: tuple[list[tuple[int, bytes | None]], bool] = pickle.loads(done.stdout)
        return answers

    return run


@pytest.fixture
def alone() -> Callable[[Callable[[int], object]], Callable[[int], bytes | None]]:
    """Load a body like an executor."""

    def load(body: Callable[[int], object]) -> Callable[[int], bytes | None]:
        task: Callable[[int], bytes | None] = pickle.loads(pickle.dumps(capture(body).code))
        return task

    return load
