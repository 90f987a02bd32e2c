"""Answers of every endpoint are lost after the master has acted: clients repeat requests, and nothing is done twice."""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import (
    CreateAccount,
    GrantQuota,
    ListAccounts,
    ListUsage,
    RevokeAccount,
    RotateSeal,
    SetNetwork,
    SetRole,
)
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    Cursor,
    Hello,
    ListPackages,
    PackageStatus,
    PrepareUploads,
    StartTasks,
    Upload,
)
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.fleet_messages import ListWorkers
from cloudpar_protocol.payloads import BlobRef, RangeData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    Lease,
    LeaseRef,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from cloudpar_worker.shell.master_client import MasterClient
from cloudpar_worker.shell.reach import Reach
from support.books import close_books
from support.customer import Customer
from support.lossy import lossy_line
from support.master_process import Master
from support.scale import Scale
from support.task_functions import ten_milliseconds
from support.up import Up, worker

THREADS = 8
TASKS, CHUNK = 6, 2
QUOTA_US, MORE_US = 10**9, 10**6
LONGEST_S = 120.0
LEASE_S = 60.0
"""Long, since on a busy machine a shorter lease may end before a worker starts with its chunk."""


class Ends(NamedTuple):
    """The endpoint of the calls, with the tokens of their senders."""

    endpoint: str
    worker_token: str
    admin_token: str


@contextmanager
def asking(ends: Ends, token: str) -> Iterator[Connection]:
    connection = Connection(ends.endpoint, token, RetryPolicy(LONGEST_S))
    try:
        yield connection
    finally:
        connection.close()


class Hand:
    """Runs the chunks of any lease with the worker's client, one task after the other, and gives some back."""

    def __init__(self, ends: Ends, numbers: Iterator[int]) -> None:
        self._client = MasterClient(ends.endpoint, ends.worker_token, Reach(lambda _: None))
        self._numbers = numbers
        self._name = f"w{next(numbers)}"
        self.attempts: list[int] = []

    def close(self) -> None:
        """Close the connections, as the end of an agent's process does."""
        self._client._channel.close()

    def turn(self) -> None:
        attempt = f"{self._name}-{next(self._numbers)}"
        request = RetrieveTasks(attempt_id=attempt, worker_id=self._name, executors=1, chunks=1)
        for lease in self._client.call(routes.RETRIEVE_TASKS, request).leases:
            self.attempts.append(lease.attempt)
            self._client.call(
                routes.EXTEND_LEASES, ExtendLeases(worker_id=self._name, leases=[LeaseRef(**lease.identity())])
            )
            self._work(lease)

    def _work(self, lease: Lease) -> None:
        (first, *rest) = [index for start, end in lease.ranges for index in range(start, end)]
        self._publish(lease, TaskResult(first, "ok", self._us(), data=b"value"), 0, closes=not rest)
        if rest and lease.start == 0:
            back = Return(**lease.identity(), seq=1, ranges=[(index, index + 1) for index in rest], closes=True)
            self._client.call(routes.GIVE_BACK, GiveBack(worker_id=self._name, returns=[back]))
            return
        for seq, index in enumerate(rest, start=1):
            self._publish(lease, self._large(lease, index, seq), seq, closes=index == rest[-1])

    def _us(self) -> int:
        """All tasks have different durations, so that a wrong charge is noticed."""
        return 1_000 + next(self._numbers)

    def _large(self, lease: Lease, index: int, seq: int) -> TaskResult:
        body = f"large {index}".encode()
        wanted = PrepareResult(
            package_id=lease.package_id, lease_id=lease.lease_id, seq=seq, size=len(body), crc32=zlib.crc32(body)
        )
        (place,) = self._client.call(routes.PREPARE_RESULTS, PrepareResults(results=[wanted])).results
        self._client.put(place.link, [body])
        return TaskResult(index, "ok", self._us(), blob=BlobRef(place.key, len(body)))

    def _publish(self, lease: Lease, result: TaskResult, seq: int, *, closes: bool) -> None:
        made = Publication(**lease.identity(), seq=seq, results=[result], closes=closes, wait_us=lease.wait_us)
        self._client.call(
            routes.PUBLISH_RESULTS, PublishResults(worker_id=self._name, executors=1, publications=[made])
        )


class Life:
    """An account from its creation to its revocation, and its packages."""

    def __init__(self, ends: Ends, name: str, hand: Hand) -> None:
        self._ends, self._name, self._hand = ends, name, hand

    def live(self) -> None:
        with asking(self._ends, self._ends.admin_token) as operator, asking(self._ends, self._name) as user:
            token_hash = hashlib.sha256(self._name.encode()).hexdigest()
            account = operator.call(
                routes.CREATE_ACCOUNT,
                CreateAccount(idempotency_key=self._name, name=self._name, token_hash=token_hash, quota_us=QUOTA_US),
            ).account
            grant = GrantQuota(idempotency_key="more", account_id=account.account_id, quota_us=MORE_US)
            operator.call(routes.GRANT_QUOTA, grant)
            spent_us = self._run(user)
            hello = user.call(routes.HELLO, Hello())
            assert hello.spent_us == spent_us
            rotation = RotateSeal(idempotency_key="rotate", account_id=account.account_id)
            operator.call(routes.ROTATE_SEAL, rotation)
            rotated = user.call(routes.HELLO, Hello()).seal_key
            operator.call(routes.ROTATE_SEAL, rotation)
            assert user.call(routes.HELLO, Hello()).seal_key == rotated != hello.seal_key
            operator.call(routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account.account_id))
            (mine,) = [
                each for each in operator.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts if each.name == self._name
            ]
            assert (mine.granted_us, mine.reserved_us, mine.state) == (QUOTA_US + MORE_US, 0, "revoked")
            assert mine.spent_us == spent_us
            assert operator.call(routes.LIST_WORKERS, ListWorkers()).workers
            usage = operator.call(routes.LIST_USAGE, ListUsage(since="2000-01-01")).usage
            assert sum(each.charged_us for each in usage if each.account_id == account.account_id) == spent_us
            with pytest.raises(BadRequest, match="cannot assume roles"):
                operator.call(routes.SET_ROLE, SetRole(account_id=account.account_id))
            offline = SetNetwork(account_id=account.account_id, network="none")
            assert operator.call(routes.SET_NETWORK, offline).account.network == "none"

    def _run(self, user: Connection) -> int:
        """Run two packages, of which one is cancelled before any of its tasks is done. Returns the charge."""
        package_id, other_id = self._start(user, "one"), self._start(user, "other")
        cancelled = user.call(routes.CANCEL_TASKS, CancelTasks(package_id=other_id))
        results, last = self._await(user, package_id)
        assert sorted(result.index for result in results) == list(range(TASKS))
        spent_us = sum(result.duration_us for result in results)
        assert (last.state, last.progress.charged_us) == ("completed", spent_us)
        others, ended = self._await(user, other_id)
        assert (ended.state, cancelled.state) == ("cancelled", "cancelled")
        listed = user.call(routes.LIST_PACKAGES, ListPackages()).packages
        assert sorted(each.package_id for each in listed) == sorted([package_id, other_id])
        user.call(routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id, other_id]))
        assert len({result.index for result in others}) == len(others)
        return spent_us + ended.progress.charged_us

    def _start(self, user: Connection, key: str) -> str:
        code = f"code of {self._name}".encode()
        upload = Upload(kind="code", size=len(code), crc32=zlib.crc32(code), hash=hashlib.sha256(code).hexdigest())
        (place,) = user.call(routes.PREPARE_UPLOADS, PrepareUploads(uploads=[upload])).uploads
        if place.link is not None:
            user.put(place.link, [code])
        assert upload.hash is not None
        start = StartTasks(
            idempotency_key=key, n=TASKS, code=TaskCode(upload.hash, blob=BlobRef(place.key, len(code))),
            data=RangeData(0, 1), python="3.11", chunksize=CHUNK,
        )  # fmt: skip
        return user.call(routes.START_TASKS, start).package_id

    def _await(self, user: Connection, package_id: str) -> tuple[list[TaskResult], PackageStatus]:
        results: list[TaskResult] = []
        cursor = 0
        while True:
            asked = AwaitTasks(packages=[Cursor(package_id=package_id, cursor=cursor)])
            (status,) = user.call(routes.AWAIT_TASKS, asked).packages
            results += status.results
            cursor = status.cursor
            if status.settled and not status.more:
                return results, status
            self._hand.turn()


def test_g06_every_endpoint_loses_answers(folder: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    wanted, numbers, names, attempts = scale(600, 10_000), count(), count(), list[int]()
    settings = {"lease_s": LEASE_S}
    with (
        Master(folder, "--port", "0", stdin=True, settings=settings) as up,
        lossy_line(up.endpoint, seed=6) as line,
        asking(Ends(up.endpoint, "worker", "admin"), "admin") as operator,
    ):
        ends = Ends(line.endpoint, "worker", "admin")
        before = len(operator.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts)

        def live() -> int:
            lives, hand = 0, Hand(ends, numbers)
            while line.calls.total() < wanted:
                Life(ends, f"user {next(names)}", hand).live()
                lives += 1
            hand.close()
            attempts.extend(hand.attempts)
            return lives

        with ThreadPoolExecutor(THREADS) as threads:
            lives = sum(each.result(timeout=None) for each in [threads.submit(live) for _ in range(THREADS)])
        assert len(operator.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts) == before + lives
    assert set(attempts) == {1}, "no chunk was handed out twice"
    assert set(line.lost) == {route.path for route in routes.ROUTES}
    share = line.lost.total() / line.calls.total()
    reached(f"{share:.0%} of the answers to {line.calls.total():,} calls lost, on {len(line.lost)} endpoints: "
            "0 duplicates, 0 hangs")  # fmt: skip


def test_g06_a_map_over_a_lossy_line(folder: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    """A real SDK and a real agent use the connection."""
    tasks = scale(200, 5_000)
    with Up(folder, workers=0) as up, lossy_line(up.endpoint, seed=7) as line:
        customer = Customer(up, "patient")
        up.endpoint = line.endpoint
        with worker(up, executors=2), customer.pool() as pool:
            results = pool.map(ten_milliseconds, range(tasks))
            assert results.package_id is not None
            assert list(results) == list(range(tasks))
            books = close_books(up, customer.token, results.package_id)
        customer.assert_charged_once(books, tasks)
    reached(f"a map of {tasks:,} tasks, {line.lost.total():,} answers lost: each task charged once")
