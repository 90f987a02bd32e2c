"""Runs the real services and adapters on the stand-in for AWS that the tests use, and counts their requests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from math import ceil
from typing import Any
from unittest.mock import patch

from msgspec import Struct

from aws.in_process import ENDPOINT, clients_in_process, free
from aws.stores import Names, create
from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.aws.backend import POLICY
from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.adapters.aws.fleet import AutoScalingFleet
from cloudpar_master.adapters.aws.fleet_lock import FleetLock
from cloudpar_master.adapters.aws.objects import Objects
from cloudpar_master.adapters.aws.package_store import DAY_S, DynamoPackageStore
from cloudpar_master.adapters.aws.table import Table
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.adapters.aws.worker_registry import DynamoWorkerRegistry
from cloudpar_master.core.fleet_size import HostShape
from cloudpar_master.ports import AccountRecord
from cloudpar_master.ports.key_safe import ENCRYPTED_BYTES
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.dispatcher import BY_NAME, Dispatcher
from cloudpar_master.services.fleet_keeper import FleetKeeper
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Timer
from cloudpar_protocol import codec
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from cloudpar_protocol.seals import KEY_BYTES
from support.ids import CountedIds
from support.timeline import Timeline

from .counts import Counts
from .meter import metered
from .quick_tables import quick

QUOTA_US = 10**15
USER, WORKER = "a user's token", "the workers' token"

RECEIPT_CHARS = 412
"""The length of a receipt of AWS's queues. Moto's receipts are shorter, and would make the rows that contain them too
small.
"""

METERED_BYTES = 512 * 1024
"""API Gateway counts a body as one request for every METERED_BYTES."""

TRACED_PART = 0.05
"""Of the requests of a function in one second, X-Ray traces the first one and this part of the others."""

_numbers = count()


class _Safe:
    """Uses one key for all accounts, so that seals are the same in every run."""

    def make(self, account_id: str) -> bytes:
        return account_id.encode().ljust(ENCRYPTED_BYTES)

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        return b"k" * KEY_BYTES if encrypted == self.make(account_id) else None


class Group:
    """Stands in for AWS's client of Auto Scaling. It has one group, which is as large as it may be."""

    def __init__(self, counts: Counts, hosts: int) -> None:
        self._counts = counts
        self._wanted = self._largest = hosts

    def describe_auto_scaling_groups(self, **_: Any) -> dict[str, Any]:
        """Return the one group."""
        self._counts.add("AutoScaling")
        # Each simulated agent reports its own name as the name of its host.
        instances = [{"InstanceId": f"{n:032x}", "LifecycleState": "InService"} for n in range(self._wanted)]
        return {"AutoScalingGroups": [
            {"DesiredCapacity": self._wanted, "MaxSize": self._largest, "Instances": instances}
        ]}  # fmt: skip

    def describe_scaling_activities(self, **_: Any) -> dict[str, Any]:
        """Return no activity: no instance fails to start."""
        self._counts.add("AutoScaling")
        return {"Activities": []}

    def set_desired_capacity(self, **asked: Any) -> None:
        """Set how many instances are wanted; they run at once."""
        self._counts.add("AutoScaling")
        self._wanted = asked["DesiredCapacity"]


class Master:
    """The Lambda functions of a deployment: for clients, for workers, and the timer, each with its own caches."""

    def __init__(self, clock: Timeline, counts: Counts, deploy: Callable[[], Backend]) -> None:
        self.counts = counts
        self._clock = clock
        self._traced_s: dict[str, int] = {}
        accounts = deploy().accounts
        accounts.create(AccountRecord("ann", "ann", hash_token(USER), "active", QUOTA_US, 0, 0, clock.now()))
        self._client, self._worker, timer = Dispatcher(deploy()), Dispatcher(deploy()), deploy()
        self._timer, self._keeper = Timer(timer), FleetKeeper(timer)

    def call(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Send one request through the codec, as over the wire."""
        role = BY_NAME[route.name].role
        dispatcher, body = self._worker if role == "worker" else self._client, codec.encode(request)
        asked = dispatcher.admit(route.name, token, body, codec.MSGPACK)
        answer: Any = codec.encode(dispatcher.perform(asked))
        self.counts.add("API Gateway", ceil(max(len(body), len(answer)) / METERED_BYTES))
        self.counts.add("Lambda")
        self._trace(str(role))
        return codec.decode(answer, route.reply)

    def tick(self) -> int:
        """Run the timer's function once, and return how many packages were due."""
        self.counts.add("Lambda")
        self._keeper.tick()
        self._timer.report_lost()
        return finish(self._timer.fold_due()).packages

    def _trace(self, function: str) -> None:
        """Count the request's trace: 1 for the first request to a function in a second, TRACED_PART for any other."""
        second = self._clock.now_us // 1_000_000
        first = self._traced_s.get(function) != second
        self._traced_s[function] = second
        self.counts.add("traces", 1 if first else TRACED_PART)


@contextmanager
def on_aws(clock: Timeline, counts: Counts, hosts: int) -> Iterator[Master]:
    """Yield a master on moto whose fleet has this many hosts. The master's requests to AWS are counted."""
    at = clients_in_process(clock)
    names = create(f"calls-{next(_numbers)}", ENDPOINT, ENDPOINT, ENDPOINT)
    # The age of messages decides how many chunks wait in the queue. So moto's queues use an exact clock here; in the
    # tests they do not.
    queues = patch.multiple(
        "moto.sqs.models",
        unix_time=lambda *_: clock.now(),
        unix_time_millis=lambda *_: clock.now() * 1000,
        generate_receipt_handle=lambda: f"{next(_numbers):0>{RECEIPT_CHARS}}",
    )
    try:
        tables = quick(names.packages, names.accounts)
        with queues, tables, metered(counts, DynamoDB=at.dynamodb, SQS=at.sqs, S3=at.s3):
            group = Group(counts, hosts)
            yield Master(clock, counts, lambda: _deployment(clock, names, at, group))
    finally:
        free(names)


def _deployment(clock: Timeline, names: Names, at: Clients, group: Any) -> Backend:
    ids, packages = CountedIds(), Table(at.dynamodb, names.packages)
    return Backend(
        packages=DynamoPackageStore(packages, Objects(lambda: at.s3, names.bucket), clock, ids, 30 * DAY_S),
        accounts=DynamoAccountStore(Table(at.dynamodb, names.accounts), clock),
        queue=SqsTaskQueue(at.sqs, names.queue_url, names.dead_letter_url, clock, names.express_url),
        registry=DynamoWorkerRegistry(packages, clock, DAY_S),
        blobs=S3BlobStore(lambda: at.s3, names.bucket, clock),
        clock=clock,
        ids=ids,
        policy=POLICY,
        worker_token_hash=hash_token(WORKER),
        admin_token_hash="",
        safe=_Safe(),
        fleet=AutoScalingFleet(lambda: group, "g", clock, FleetLock(packages, clock, ids, DAY_S), HostShape(4, 2)),
    )
