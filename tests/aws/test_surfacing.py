"""The queue on engines with their own FIFO queues and their own clock, so no test here waits for time to pass.

A message becomes visible again when its holder returns it. `make test` runs this on ElasticMQ, `make e2e` on ministack.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Barrier
from typing import Any

import pytest

from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.adapters.system import SystemClock
from cloudpar_master.ports import LARGEST_RECEIVES, Message, Sending

from . import engines
from .differences import ON_MINISTACK
from .stores import clients, create_queues

HOLD_S = 600.0
RECEIVERS = 8


@pytest.fixture
def client() -> Any:
    return clients(engines.ministack() if ON_MINISTACK else engines.elasticmq()).sqs


@pytest.fixture
def queue(request: pytest.FixtureRequest, client: Any) -> SqsTaskQueue:
    at = clients(client.meta.endpoint_url)
    main, dead, express = create_queues(at, str(abs(hash(request.node.nodeid))))
    return SqsTaskQueue(client, main, dead, SystemClock(), express)


def sendings(count: int) -> list[Sending]:
    return [Sending(f"g{number}", f"body {number}") for number in range(count)]


def test_every_chunk_is_received_once(queue: SqsTaskQueue) -> None:
    assert queue.send(sendings(35)) == [True] * 35
    messages = queue.receive(100, HOLD_S, "attempt")
    assert {message.body for message in messages} == {f"body {number}" for number in range(35)}
    assert len(messages) == 35
    assert all(message.receives == 1 and message.wait_us < 60_000_000 for message in messages)
    assert queue.receive(10, HOLD_S, "another") == []


def test_a_message_that_is_visible_again_is_another_delivery(queue: SqsTaskQueue) -> None:
    queue.send(sendings(1))
    (first,) = queue.receive(1, HOLD_S, "a")
    queue.extend([first.receipt], 0.0)
    (second,) = queue.receive(1, HOLD_S, "b")
    assert (second.body, second.receives) == (first.body, 2)
    queue.delete([second.receipt])
    queue.extend([second.receipt], 0.0)
    assert queue.receive(1, HOLD_S, "c") == []


def test_a_message_that_is_delivered_too_often_is_dead(queue: SqsTaskQueue) -> None:
    queue.send(sendings(1))
    for number in range(LARGEST_RECEIVES):
        (message,) = queue.receive(1, HOLD_S, str(number))
        queue.extend([message.receipt], 0.0)
    assert queue.receive(1, HOLD_S, "last") == []
    (dead,) = queue.dead(10)
    assert dead.body == "body 0"
    queue.delete([dead.receipt])
    assert queue.dead(10) == []


def test_unknown_receipts_are_ignored(queue: SqsTaskQueue) -> None:
    queue.delete(["00000000-0000-0000-0000-000000000000#00000000-0000-0000-0000-000000000000"])
    queue.extend(["00000000-0000-0000-0000-000000000000#00000000-0000-0000-0000-000000000000"], 60.0)


def all_receive(queue: SqsTaskQueue, attempt: str) -> list[Message]:
    """Return what many concurrent receivers get that each request one message."""
    line = Barrier(RECEIVERS, timeout=60)

    def receive(number: int) -> list[Message]:
        line.wait()
        return queue.receive(1, HOLD_S, f"{attempt} {number}")

    with ThreadPoolExecutor(RECEIVERS) as threads:
        return list(chain.from_iterable(threads.map(receive, range(RECEIVERS))))


def test_one_of_many_receivers_gets_a_message_that_is_visible_again(queue: SqsTaskQueue) -> None:
    queue.send(sendings(1))
    (held,) = queue.receive(1, HOLD_S, "first")
    for delivery in range(2, LARGEST_RECEIVES + 1):
        queue.extend([held.receipt], 0.0)
        (held,) = all_receive(queue, str(delivery))
        assert held.receives == delivery
