"""During an update of a deployment, functions of the last release and of today serve the same packages."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PackageStatus, StartTasks
from cloudpar_protocol.payloads import RangeData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    Lease,
    LeaseRef,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from support.scale import Scale

from .releases import TOKEN, Deployment, last_and_today

QUOTA_US = 10**12
WORKERS = 3
LEASE_S = 5.0
"""The test waits this long for the tasks of leases that a worker forgets."""
PAUSE_S = 0.1
"""The time between two requests of a client without news, and of a worker without a lease."""


@pytest.fixture
def update(stack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """The functions of both releases, which take turns."""
    policy = {"lease_s": LEASE_S, "chunk_target_us": 10_000, "request_burst": 10**9, "running_packages": 10**9}
    monkeypatch.setenv("CLOUDPAR_POLICY", json.dumps(policy))
    with last_and_today(tmp_path) as both:
        yield Deployment(*both)


class Worker:
    """Publishes made-up results in several parts, repeats requests, gives tasks back, and forgets some leases."""

    def __init__(self, on: Deployment, name: str) -> None:
        self._on = on
        self._name = name
        self._random = random.Random(name)
        self._requests = 0

    def work(self, over: threading.Event) -> None:
        """Run leases until all packages have ended."""
        while not over.is_set():
            self._requests += 1
            asked = RetrieveTasks(
                attempt_id=f"{self._name}-{self._requests}", worker_id=self._name, executors=2, chunks=1, host="host",
                pythons=["3.11"],
            )  # fmt: skip
            leases = self._on.ask(routes.RETRIEVE_TASKS, asked).leases
            for lease in leases:
                self._run(lease)
            if not leases:
                over.wait(PAUSE_S)

    def _run(self, lease: Lease) -> None:
        if lease.attempt == 1 and self._random.random() < 0.05:
            return
        tasks = [task for start, end in lease.ranges for task in range(start, end)]
        kept = tasks
        if len(tasks) > 2 and self._random.random() < 0.2:
            kept, left = tasks[: len(tasks) // 2], tasks[len(tasks) // 2 :]
            self._give_back(lease, (left[0], left[-1] + 1))
        # The order is that of executors which share a chunk. The second publication repeats the tasks of the first one,
        # with other durations, as if another worker had run them, too.
        self._random.shuffle(kept)
        parts = [kept[: len(kept) // 2], kept]
        for seq, part in enumerate(parts, start=1):
            results = [
                TaskResult(task, "ok", 1_000 + self._random.randrange(1_000), data=b"%d" % (task**2)) for task in part
            ]
            publication = Publication(
                **lease.identity(), seq=seq, results=results, closes=seq == len(parts), wait_us=lease.wait_us
            )
            asked = PublishResults(worker_id=self._name, executors=2, publications=[publication])
            for _ in range(self._random.choice([1, 1, 2])):
                self._on.ask(routes.PUBLISH_RESULTS, asked)
            if seq < len(parts):
                beat = ExtendLeases(worker_id=self._name, leases=[LeaseRef(**lease.identity())])
                self._on.ask(routes.EXTEND_LEASES, beat)

    def _give_back(self, lease: Lease, tasks: tuple[int, int]) -> None:
        returned = Return(**lease.identity(), seq=0, ranges=[tasks], attempt=lease.attempt)
        self._on.ask(routes.GIVE_BACK, GiveBack(worker_id=self._name, returns=[returned]))


def read(on: Deployment, package_id: str) -> tuple[list[TaskResult], PackageStatus]:
    """Read a package's results until its charge is final, as a client does."""
    results: list[TaskResult] = []
    cursor = 0
    while True:
        status = on.status(package_id, TOKEN, cursor)
        results += status.results
        cursor = status.cursor
        if status.settled and not status.more:
            return results, status
        if not status.results:
            threading.Event().wait(PAUSE_S)


@pytest.mark.timeout(1_800)
def test_packages_during_an_update_get_each_result_once_and_are_charged_once(
    update: Deployment, scale: Scale, reached: Callable[..., None]
) -> None:
    made = update.operate(
        routes.CREATE_ACCOUNT, idempotency_key="ada", name="ada", token_hash=hash_token(TOKEN), quota_us=QUOTA_US
    ).account
    sizes = [(scale(300, 3_000), 10), (scale(20, 300), 1), (scale(100, 2_000), None)]
    started = [
        StartTasks(
            idempotency_key=f"map-{tasks}", n=tasks, code=TaskCode("0" * 64, b"code"), data=RangeData(0, 1),
            python="3.11", chunksize=chunksize,
        )
        for tasks, chunksize in sizes
    ]  # fmt: skip
    ids = [update.ask(routes.START_TASKS, each, TOKEN).package_id for each in started]
    # A client that has lost the answer repeats its request. The other release must recognize the package.
    assert [update.ask(routes.START_TASKS, each, TOKEN).package_id for each in started] == ids
    over = threading.Event()

    def keep_time() -> None:
        while not over.wait(1.0):
            update.tick()

    with ThreadPoolExecutor(WORKERS + 1) as threads:
        others = [threads.submit(Worker(update, f"worker-{number}").work, over) for number in range(WORKERS)]
        others.append(threads.submit(keep_time))
        try:
            books = [read(update, package_id) for package_id in ids]
        finally:
            over.set()
        for each in others:
            each.result()
    for asked, (results, last) in zip(started, books, strict=True):
        assert last.state == "completed"
        assert sorted((each.index, each.data) for each in results) == [(n, b"%d" % n**2) for n in range(asked.n)]
        assert last.progress.charged_us == sum(each.duration_us for each in results)
    (account,) = update.operate(routes.LIST_ACCOUNTS).accounts
    assert (account.account_id, account.granted_us, account.reserved_us) == (made.account_id, QUOTA_US, 0)
    assert account.spent_us == sum(last.progress.charged_us for _, last in books)
    reached(
        "functions of 0.3.0 and of today, by turns: {tasks} tasks, each with one result and one charge",
        tasks=sum(each.n for each in started),
    )
