"""Runs the tasks of `parallel_for` bodies as executors do, without a pool."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING, Any

import pytest

from cloudpar.effects import Merge, SideEffectError, capture

if TYPE_CHECKING:
    from collections.abc import Callable


def parallel_for(start: int, stop: int, body: Callable[[int], object], *, executors: int = 3, seed: int = 0) -> None:
    """Run tasks in shuffled order on several loaded copies of the task code, and merge them in another order."""
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


def failure(body: Callable[[int], object], stop: int = 2) -> SideEffectError:
    """Run tasks 0 to `stop`, which must be refused, and return the error."""
    with pytest.raises(SideEffectError) as caught:
        parallel_for(0, stop, body)
    return caught.value


def alone(body: Callable[[int], object]) -> Callable[[int], bytes | None]:
    """Load a body like an executor."""
    task: Callable[[int], bytes | None] = pickle.loads(pickle.dumps(capture(body).code))
    return task


def gathered(body: Callable[[int], object], *indexes: int) -> Merge:
    """Run tasks in this process in the given order, and return their writes, which are not applied yet."""
    captured = capture(body)
    merge = captured.merge()
    for index in indexes:
        merge.add(index, captured.code(index))
    return merge


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

# -S: without the site module, no path file makes an editable install importable.
WORKER_COMMAND = [sys.executable, "-I", "-S", "-W", "error", "-c", _WORKER, sysconfig.get_path("purelib")]
"""Reads `(code, indexes)` and runs the tasks, where `cloudpar` cannot be imported."""


def elsewhere(body: Callable[[int], object], indexes: list[int]) -> bool:
    """Run tasks in a process without cloudpar, and copy their writes back; return whether NumPy was imported there."""
    captured = capture(body)
    sent = pickle.dumps((captured.code, indexes))
    done = subprocess.run(WORKER_COMMAND, input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers, numpy = pickle.loads(done.stdout)
    merge = captured.merge()
    for index, writes in answers:
        merge.add(index, writes)
    merge.commit()
    return bool(numpy)
