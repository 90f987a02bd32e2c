"""Counts the costs of the dearest requests that a client's token permits."""

from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple

from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    Cursor,
    Hello,
    ListPackages,
    PrepareUploads,
    StartTasks,
    Upload,
)
from cloudpar_protocol.limits import BULK_ITEMS, INLINE_CODE_BYTES, INLINE_DATA_BYTES, INLINE_ITEM_BYTES
from cloudpar_protocol.payloads import InlineData, TaskCode
from simulation.worker import PYTHON
from support.timeline import Timeline

from .bill import usd_of
from .counts import Counts
from .master import USER, Master, on_aws

PACKAGES = 1_000
"""How many packages the account has. One answer lists at most this many."""

LIFE = "start_tasks, cancel_tasks, acknowledge"
"""The requests of a package's life. They count as one kind, because a client must start a new package to repeat their
costs.
"""

MOST_USD = 150e-6
"""The most that requests of one kind may cost on average, in USD."""


class Abuse(NamedTuple):
    """The dearest requests of one kind, and what one of them costs on average, in USD."""

    name: str
    usd: float


def abuses(packages: int = PACKAGES) -> list[Abuse]:
    """Send the dearest requests of each kind that a token permits; return what they cost, the dearest first."""
    clock, counts = Timeline(), Counts()
    made: dict[str, int] = {}
    with on_aws(clock, counts, hosts=0) as master:
        for name, requests in _requests(master, packages):
            for request in requests:
                clock.now_us += 1_000_000
                with counts.during(name):
                    request()
            made[name] = made.get(name, 0) + len(requests)
    usd = dict.fromkeys(made, 0.0)
    for (name, what), number in counts.of.items():
        if name in made:
            usd[name] += number * usd_of(what)
    return sorted((Abuse(name, usd[name] / made[name]) for name in made), key=lambda each: -each.usd)


def _requests(master: Master, packages: int) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Yield the requests of each kind. Their order is such that each request meets the state that makes it dear."""

    def all_of(route: Any, messages: Any) -> list[Callable[[], Any]]:
        return [partial(master.call, USER, route, message) for message in messages]

    def start_one(message: StartTasks, ids: list[str]) -> None:
        ids.append(master.call(USER, routes.START_TASKS, message).package_id)

    uploads = [Upload(kind="data", size=1, crc32=0)] * BULK_ITEMS
    yield "hello", all_of(routes.HELLO, [Hello()] * 10)
    yield "prepare_uploads", all_of(routes.PREPARE_UPLOADS, [PrepareUploads(uploads=uploads)] * 3)
    ids: list[str] = []
    for first in range(0, packages, BULK_ITEMS):
        lives = [_start(number) for number in range(first, min(packages, first + BULK_ITEMS))]
        here: list[str] = []
        yield LIFE, [partial(start_one, each, here) for each in lives]
        cursors = [Cursor(package_id=each) for each in here]
        yield "await_tasks", all_of(routes.AWAIT_TASKS, [AwaitTasks(packages=cursors)] * 3)
        yield LIFE, all_of(routes.CANCEL_TASKS, [CancelTasks(package_id=each) for each in here])
        yield LIFE, all_of(routes.ACKNOWLEDGE, [Acknowledge(package_ids=here)])
        ids += here
    yield "list_packages", all_of(routes.LIST_PACKAGES, [ListPackages(limit=1000)] * 3)
    yield "cancel_tasks, again", all_of(routes.CANCEL_TASKS, [CancelTasks(package_id=each) for each in ids[:10]])
    yield "acknowledge, again", all_of(routes.ACKNOWLEDGE, [Acknowledge(package_ids=ids[:BULK_ITEMS])] * 3)


def _start(number: int) -> StartTasks:
    """Return a request with as much task code and task data as it may have. They cannot be compressed."""
    noise = Random(number).randbytes
    data = InlineData([noise(INLINE_DATA_BYTES // 2 - INLINE_ITEM_BYTES)] * 2)
    code = TaskCode("0" * 64, noise(INLINE_CODE_BYTES))
    return StartTasks(idempotency_key=f"package {number}", n=2, python=PYTHON, code=code, data=data)
