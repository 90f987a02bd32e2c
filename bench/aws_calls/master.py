"""A master on AWS in memory: the real services and adapters on clients that count calls."""

from typing import Any

from msgspec import Struct

from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.aws.backend import POLICY
from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.adapters.aws.objects import Objects
from cloudpar_master.adapters.aws.package_store import DAY_S, DynamoPackageStore
from cloudpar_master.adapters.aws.table import Table
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.adapters.aws.worker_registry import DynamoWorkerRegistry
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.dispatcher import BY_NAME, Dispatcher
from cloudpar_master.services.timer import Timer
from cloudpar_protocol import codec
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from cloudpar_protocol.seals import KEY_BYTES

from .clock import Clock
from .counts import Counts
from .queue_and_bucket import Bucket, Group, Queue
from .table import Tables

QUOTA_US = 10**15
USER, WORKER = "a user's token", "the workers' token"


class _Safe:
    """Uses one key for all accounts, so that seals are the same in every run."""

    def make(self, account_id: str) -> bytes:
        return account_id.encode()

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        return b"k" * KEY_BYTES if encrypted == account_id.encode() else None


class _Ids:
    """Yields the same ids in every run."""

    def __init__(self) -> None:
        self._number = 0

    def fresh(self) -> str:
        self._number += 1
        return f"{self._number:032x}"


class Master:
    """The deployed functions, with warm caches of their own."""

    def __init__(self, clock: Clock, counts: Counts) -> None:
        self.counts = counts
        clients = Tables(counts), Queue(counts, clock.now), Bucket(counts), Group(counts)
        accounts = self._deployment(clock, *clients).accounts
        accounts.create(AccountRecord("ann", "ann", hash_token(USER), "active", QUOTA_US, 0, 0, clock.now()))
        self._client = Dispatcher(self._deployment(clock, *clients))
        self._worker = Dispatcher(self._deployment(clock, *clients))
        self._timer = Timer(self._deployment(clock, *clients))

    @staticmethod
    def _deployment(clock: Clock, tables: Any, queue: Any, bucket: Any, group: Any) -> Backend:
        ids = _Ids()
        packages = DynamoPackageStore(Table(tables, "packages"), Objects(lambda: bucket, "b"), clock, ids, 30 * DAY_S)
        return Backend(
            packages=packages,
            accounts=DynamoAccountStore(Table(tables, "accounts"), clock),
            queue=SqsTaskQueue(queue, "queue", "dead letters", clock, "express queue"),
            registry=DynamoWorkerRegistry(Table(tables, "packages"), clock, DAY_S),
            blobs=S3BlobStore(lambda: bucket, "b", clock),
            clock=clock,
            ids=ids,
            policy=POLICY,
            worker_token_hash=hash_token(WORKER),
            admin_token_hash="",
            safe=_Safe(),
            fleet=AutoScalingFleet(lambda: group, "g", clock),
        )

    def call(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Send one request through the codec, as over the wire."""
        self.counts.add("API Gateway")
        self.counts.add("Lambda")
        dispatcher = self._worker if BY_NAME[route.name].role == "worker" else self._client
        asked = dispatcher.admit(route.name, token, codec.encode(request), codec.MSGPACK)
        answer: Any = dispatcher.perform(asked)
        return codec.decode(codec.encode(answer), route.reply)

    def tick(self) -> None:
        """Run the timer's function once."""
        self.counts.add("Lambda")
        self._timer.fold_due()
