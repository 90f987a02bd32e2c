"""Guarantee 18: task code that keeps its executor from reporting time is charged for what the agent measured."""

import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from cloudpar_worker.core import outcomes
from cloudpar_worker.core.executor_result import UNFIT, ExecutorResult
from cloudpar_worker.executor.frames import encode_result_into
from support.leases import inline, lease_of
from worker.isolation.shared import Shared

Clues = dict[str, Any]
COMPUTES_S = 0.3
AT_LEAST_US = 250_000


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1)


def kills_itself(_: Clues) -> None:
    time.sleep(COMPUTES_S)
    os.kill(os.getpid(), signal.SIGKILL)


def claims_a_lack(_: Clues) -> None:
    """Say, in the executor's own format, that the worker lacks something."""
    time.sleep(COMPUTES_S)
    channels = [each for each in gc.get_objects() if isinstance(each, socket.socket) and each.fileno() >= 0]
    frame = bytearray()
    encode_result_into(ExecutorResult(0, UNFIT, 1, message="no module named 'numpy'"), frame)
    for channel in channels:
        with suppress(OSError):  # the executor has closed the zygote's sockets
            channel.sendall(frame)
    time.sleep(60)


def test_g18_every_try_of_a_task_that_kills_its_executor_is_charged(shared: Shared) -> None:
    result = shared.run(kills_itself)
    assert result.outcome == "crashed", result
    assert result.duration_us >= outcomes.KILLS * AT_LEAST_US


def test_g18_a_task_that_says_that_the_worker_lacks_something_is_charged(shared: Shared) -> None:
    master = shared.master
    lease = lease_of(claims_a_lack, 1, account="another", data=inline([{}]), elsewhere=True)
    master.hand_out(lease)
    master.wait(lambda: any(each.lease_id == lease.lease_id for each in master.returns))
    (back,) = (each for each in master.returns if each.lease_id == lease.lease_id)
    assert back.used_us >= AT_LEAST_US


def test_g18_an_executor_that_says_so_although_no_other_worker_can_run_the_task_is_ended(shared: Shared) -> None:
    result = shared.run(claims_a_lack)
    assert result.outcome == "crashed", result
    assert result.duration_us >= AT_LEAST_US
