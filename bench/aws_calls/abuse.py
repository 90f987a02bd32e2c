"""Counts the costs of the dearest requests that a client's token permits."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import Any, NamedTuple

from cloudpar_protocol import codec, routes
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
from cloudpar_protocol.limits import (
    BULK_ITEMS,
    INLINE_CODE_BYTES,
    INLINE_DATA_BYTES,
    INLINE_ITEM_BYTES,
    INLINE_RESULT_BYTES,
)
from cloudpar_protocol.payloads import InlineData, RangeData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Publication, PublishResults, RetrieveTasks
from simulation.worker import PYTHON
from support.timeline import Timeline

from .bill import OUT, usd_of
from .counts import Counts
from .master import USER, WORKER, Master, on_aws

PACKAGES = 1_000
"""How many packages the account has. One answer lists at most this many."""

LIFE = "start_tasks, cancel_tasks, acknowledge"
"""The requests of a package's life. They count as one kind, because a client must start a new package to repeat their
costs.
"""

WITH_RESULTS = "await_tasks, 3 MB of results"
RESULTS, RESULTS_OF_PAGE = 128, 2
"""How many results of the largest inline size a package has, which are more than fit into one answer; and how many of
them are published together. Smaller pages mean more reads, but less of them fits into an answer: 2 is the dearest.
"""

MOST_USD, MOST_WITH_RESULTS_USD = 200e-6, 450e-6
"""The most that requests of one kind may cost on average, in USD: of most kinds, and of `WITH_RESULTS`."""


class Abuse(NamedTuple):
    """The dearest requests of one kind, and what one of them costs on average, in USD."""

    name: str
    usd: float

    @property
    def too_dear(self) -> bool:
        """Whether the requests miss their goal."""
        return self.usd > (MOST_WITH_RESULTS_USD if self.name == WITH_RESULTS else MOST_USD)


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

    def send(route: Any, message: Any) -> Any:
        reply = master.call(USER, route, message)
        # A client may request JSON, in which values take a third more bytes than in MessagePack.
        master.counts.add(OUT, len(codec.encode(reply, codec.JSON)))
        return reply

    def all_of(route: Any, messages: Any) -> list[Callable[[], Any]]:
        return [partial(send, route, message) for message in messages]

    def start_one(message: StartTasks, ids: list[str]) -> None:
        ids.append(send(routes.START_TASKS, message).package_id)

    uploads = [Upload(kind="data", size=1, crc32=0)] * BULK_ITEMS
    yield "hello", all_of(routes.HELLO, [Hello()] * 10)
    yield "prepare_uploads", all_of(routes.PREPARE_UPLOADS, [PrepareUploads(uploads=uploads)] * 3)
    full = Cursor(package_id=_with_results(master))
    yield WITH_RESULTS, all_of(routes.AWAIT_TASKS, [AwaitTasks(packages=[full])] * 3)
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


def _with_results(master: Master) -> str:
    """Run a package that has more inline results than one answer may contain, and return its id."""
    code, data = TaskCode("0" * 64, b""), RangeData(0, 1)
    start = StartTasks(idempotency_key="results", n=RESULTS, python=PYTHON, code=code, data=data)
    package_id = master.call(USER, routes.START_TASKS, start).package_id
    value = Random(0).randbytes(INLINE_RESULT_BYTES)
    attempts = count()
    while leases := master.call(WORKER, routes.RETRIEVE_TASKS, _retrieval(next(attempts))).leases:
        for lease in leases:
            for seq, first in enumerate(range(lease.start, lease.end, RESULTS_OF_PAGE)):
                end = min(first + RESULTS_OF_PAGE, lease.end)
                results = [TaskResult(index, "ok", 1_000, data=value) for index in range(first, end)]
                page = Publication(**lease.identity(), seq=seq, results=results, closes=end == lease.end)
                message = PublishResults(worker_id="w", executors=1, publications=[page])
                master.call(WORKER, routes.PUBLISH_RESULTS, message)
    return package_id


def _retrieval(number: int) -> RetrieveTasks:
    return RetrieveTasks(attempt_id=f"{number}", worker_id="w", executors=1, chunks=1, pythons=[PYTHON])
