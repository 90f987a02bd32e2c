"""Functions of the SDK that travel by value."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from cloudpar._serialization import carried
from cloudpar._serialization.project import remote

THREADS = 8


def test_threads_that_send_for_the_first_time_at_once_do_not_disturb_each_other() -> None:
    barrier = Barrier(THREADS)

    def send(_number: int) -> str:
        barrier.wait()
        found = pickle.loads(pickle.dumps(carried.reduced(remote.holder, remote)))
        return type(found).__name__

    for _ in range(10):
        carried._deflated.cache_clear()
        with ThreadPoolExecutor(THREADS) as threads:
            assert len(list(threads.map(send, range(THREADS)))) == THREADS
