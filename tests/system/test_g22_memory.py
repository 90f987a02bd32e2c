"""After many packages, worker and master hold as much memory as after the first ones."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count, islice
from pathlib import Path

import psutil
import pytest

from cloudpar import Pool
from support.scale import Scale
from support.up import Up

MB = 1_000_000
AT_ONCE = 20
TOLERATED_MB, TOLERATED_SHARE = 20.0, 0.1
_OWN = re.compile(r"^(?:Pss_Anon|Pss_Shmem|SwapPss): +(\d+) kB$", re.MULTILINE)
"""The lines of a process's memory in its private or shared anonymous pages, divided by the number of sharers.

Mapped files such as libraries do not count: their share changes whenever another program starts or ends.
"""


def own_mb(process: psutil.Process) -> float:
    """Return the memory of a process and its descendants; pages that several of them share count once."""
    held = _own_kb(process)
    assert held > 0, "this kernel does not report it"
    for child in process.children(recursive=True):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            held += _own_kb(child)
    return held * 1024 / MB


def _own_kb(process: psutil.Process) -> int:
    return sum(map(int, _OWN.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text())))


def codes() -> Iterator[Callable[..., int]]:
    """Yield different functions with a few KB of their own each."""
    for number in count():
        names: dict[str, Callable[..., int]] = {}
        exec(f"def code(data=None):\n    text = {'x' * 4_000!r}\n    return {number}", names)
        yield names["code"]


def run(pool: Pool, functions: Sequence[Callable[..., int]], size: int = 0) -> None:
    """Run packages of one task for each function, several at a time, each with data of this size."""
    for first in range(0, len(functions), AT_ONCE if not size else 1):
        some = functions[first : first + (AT_ONCE if not size else 1)]
        maps = [pool.map(function, [bytes(size)] if size else [None]) for function in some]
        assert [next(results) for results in maps] == [function() for function in some]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    with Up(tmp_path / "data", workers=2) as up:
        yield up


@pytest.mark.timeout(1_200)
def test_g22_memory_stays_the_same_over_many_packages(up: Up, scale: Scale, reached: Callable[[str], None]) -> None:
    parts = {"worker": up.child("cloudpar_worker"), "master": up.child("cloudpar_master")}
    warm_up, small = scale(50, 100), scale(100, 5_000)
    large, size = scale(2, 50), scale(40 * MB, 50 * MB)
    fresh, found = codes(), {}
    with up.pool() as pool:
        run(pool, list(islice(fresh, warm_up)))
        before = {name: own_mb(process) for name, process in parts.items()}
        run(pool, list(islice(fresh, small)))
        found[f"{small:,} packages"] = {name: own_mb(process) for name, process in parts.items()}
        run(pool, list(islice(fresh, large)), size)
        found[f"{large} of {size // MB} MB"] = {name: own_mb(process) for name, process in parts.items()}
    for after, held in found.items():
        for name, mb in held.items():
            assert mb - before[name] <= max(TOLERATED_MB, TOLERATED_SHARE * before[name]), (after, before, found)
    for name, mb in before.items():
        steps = ", ".join(f"after {after} {held[name] - mb:+.1f} MB" for after, held in found.items())
        reached(f"{name}: {mb:.0f} MB after {warm_up} packages, {steps}")
