"""A pool whose temporary folder takes no more results: the call says so, and continues if space is freed in time.

A limit on file sizes simulates the full disk: writing fails in the same place, and the test does not need to be root.
"""

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from cloudpar import Pool
from cloudpar._client import storage_watch
from cloudpar.errors import FolderUnwritable
from support.waiting import until

ROOM_BYTES = 1_000_000


@contextmanager
def small_files(pool: Pool) -> Iterator[None]:
    """Make the pool's worker unable to write large results."""
    cluster = pool._lifetime.cluster
    assert cluster is not None
    worker = psutil.Process(cluster.pids[1])
    _, hard = worker.rlimit(psutil.RLIMIT_FSIZE)
    worker.rlimit(psutil.RLIMIT_FSIZE, (ROOM_BYTES, hard))
    yield
    worker.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))


def large_if_negative(number: int) -> bytes:
    return bytes(2 * ROOM_BYTES if number < 0 else 10)


def test_a_folder_that_stays_full_raises_within_the_patience_and_the_pool_goes_on() -> None:
    with Pool(workers=1, patience_s=1.0) as pool:
        assert pool.submit(abs, -1).result() == 1
        with small_files(pool):
            results = pool.map(large_if_negative, [1, -1], chunksize=1)
            assert next(results) == bytes(10)
            with pytest.raises(FolderUnwritable, match="set TMPDIR to a folder with more room") as caught:
                next(results)
            assert caught.value.errno == errno.EFBIG
            future = pool.submit(large_if_negative, -1)
            with pytest.raises(OSError, match="MB free"):
                future.result()
            # Results that no client reads no longer block the worker's publishing threads.
            assert list(pool.map(large_if_negative, [1, 2])) == [bytes(10)] * 2
        assert len(pool.submit(large_if_negative, -1).result()) == 2 * ROOM_BYTES


def test_a_folder_that_has_room_again_brings_all_results(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(storage_watch, "SAY_S", 0.1)
    with Pool(workers=1) as pool:
        assert pool.submit(abs, -1).result() == 1
        with small_files(pool):
            results = pool.map(large_if_negative, [-1] * 3)
            until(lambda: any("no result can be stored" in each.getMessage() for each in caplog.records))
        assert [len(each) for each in results] == [2 * ROOM_BYTES] * 3
    said = [each.getMessage() for each in caplog.records]
    assert len([each for each in said if "no result can be stored: a worker cannot write results to" in each]) == 1
