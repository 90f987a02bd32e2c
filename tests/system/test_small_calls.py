"""Small calls beside a long job, on a master and a worker of this machine: the order in which tasks start."""

import time
from pathlib import Path

import pytest

from cloudpar import Pool

TASKS, NAP_S, EXECUTORS = 40, 0.3, 2


def mark(place: tuple[Path, str, float]) -> None:
    """Record that a task has started, and sleep."""
    folder, name, nap_s = place
    with (folder / "started").open("a") as started:
        started.write(f"{name}\n")
    time.sleep(nap_s)


@pytest.mark.parametrize("chunksize", [None, 1, 5])
def test_a_call_starts_before_most_of_a_long_job_that_was_there_first(tmp_path: Path, chunksize: int | None) -> None:
    with Pool(workers=EXECUTORS) as pool:
        long = pool.map(mark, [(tmp_path, "long", NAP_S)] * TASKS, chunksize=chunksize)
        next(long)
        for number in range(3):
            before = (tmp_path / "started").read_text().splitlines()
            pool.submit(mark, (tmp_path, f"call {number}", 0.0)).result()
            started = (tmp_path / "started").read_text().splitlines()
            passed = started.index(f"call {number}") - len(before)
            assert passed < TASKS // 4  # those that started while the call was sent: more if the machine is busy
            assert started.count("long") < TASKS
        long.cancel()
