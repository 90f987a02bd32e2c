"""The adapters of AWS on its stand-ins, for this folder's tests and for the suites of the ports."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import moto.sqs.models
import pytest
import urllib3

from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.adapters.aws.objects import Objects
from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.aws.table import Table
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.adapters.aws.worker_registry import DynamoWorkerRegistry
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import Clock
from cloudpar_protocol.payloads import Link
from support.asgi import Answer
from support.clock import NOW, SetClock
from support.stores import Stores

from . import documented_limits, engines

REGION = "us-east-1"
KEPT_S = 30 * 86400.0

CONTRACT: Any = json.loads((Path(__file__).parents[2] / "infra/lib/contract.json").read_text())
"""The file from which the stack makes its resources; these tests make theirs from it, too."""

documented_limits.watch()

_http = urllib3.PoolManager(retries=False, maxsize=16)


class Names(NamedTuple):
    """The names of one deployment's resources."""

    packages: str
    accounts: str
    queue_url: str
    dead_letter_url: str
    express_url: str
    bucket: str


@cache
def clients(endpoint: str) -> Clients:
    """Return clients, shared by all threads: they are slow to make."""
    made = Clients(REGION, endpoint)
    _ = made.dynamodb, made.sqs, made.s3
    return made


def create_tables(at: Clients, name: str) -> tuple[str, str]:
    """Create the two tables as the stack does."""
    packages, accounts = f"{name}-packages", f"{name}-accounts"
    _create_table(at, packages, CONTRACT["packageTable"])
    _create_table(at, accounts, CONTRACT["accountTable"])
    return packages, accounts


def _create_table(at: Clients, name: str, table: Any) -> None:
    indexes: Any = [
        {
            "IndexName": index,
            "KeySchema": _keys(keys),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": keys["includes"]}
            if "includes" in keys
            else {"ProjectionType": "KEYS_ONLY"},
        }
        for index, keys in table["indexes"].items()
    ]
    types = {table["partitionKey"]: "S", table["sortKey"]: "S"}
    for keys in table["indexes"].values():
        types |= {keys["partitionKey"]: "S", keys["sortKey"]: "N"}
    attributes: Any = [{"AttributeName": attribute, "AttributeType": kind} for attribute, kind in types.items()]
    more: Any = {"GlobalSecondaryIndexes": indexes} if indexes else {}
    # A busy engine answers late, so the library asks again.
    with suppress(at.dynamodb.exceptions.ResourceInUseException):
        at.dynamodb.create_table(
            TableName=name, KeySchema=_keys(table), AttributeDefinitions=attributes,
            BillingMode="PAY_PER_REQUEST", **more,
        )  # fmt: skip


def _keys(of: Any) -> Any:
    return [
        {"AttributeName": of["partitionKey"], "KeyType": "HASH"},
        {"AttributeName": of["sortKey"], "KeyType": "RANGE"},
    ]


def create_queues(at: Clients, name: str) -> tuple[str, str, str]:
    """Create the main queue, the dead-letter queue and the express queue."""
    fifo: Any = {"FifoQueue": "true", "ContentBasedDeduplication": "false"}
    dead = at.sqs.create_queue(QueueName=f"{name}-dead.fifo", Attributes=fifo)["QueueUrl"]
    arn = at.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    times: Any = {
        "VisibilityTimeout": str(CONTRACT["queue"]["visibilityS"]),
        "MessageRetentionPeriod": str(CONTRACT["queue"]["retentionDays"] * 86400),
    }
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": CONTRACT["queue"]["maxReceiveCount"]})
    settings = {**fifo, **times, "RedrivePolicy": redrive}
    live = at.sqs.create_queue(QueueName=f"{name}.fifo", Attributes=settings)["QueueUrl"]
    return live, dead, at.sqs.create_queue(QueueName=f"{name}-express.fifo", Attributes=settings)["QueueUrl"]


@cache
def create(name: str, tables: str, queues: str, blobs: str) -> Names:
    """Create a deployment's resources if they do not exist."""
    bucket = f"bucket-{name}"
    clients(blobs).s3.create_bucket(Bucket=bucket)
    return Names(*create_tables(clients(tables), name), *create_queues(clients(queues), name), bucket)


def transfer(link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Send the request that a link describes, with a body of any length."""
    sent = {**link.headers, **(headers or {})}
    sent.pop("Content-Length", None)  # the library sets it
    answer = _http.request(link.method, link.url, body=None if link.method == "GET" else body, headers=sent)
    return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data)


def stores(name: str, clock: SetClock, tables: str, queues: str, blobs: str) -> Stores:
    """Return the adapters of one process of the deployment with this name. Its resources are created if missing."""
    return stores_of(create(name, tables, queues, blobs), clock, tables, queues, blobs)


def stores_of(names: Names, clock: SetClock, tables: str, queues: str, blobs: str) -> Stores:
    """Return the adapters of one process of a deployment."""
    ids, dynamodb = RandomIds(), clients(tables).dynamodb
    return Stores(
        packages=DynamoPackageStore(
            Table(dynamodb, names.packages),
            Objects(lambda: clients(blobs).s3, names.bucket),
            clock,
            ids,
            KEPT_S,
            due_step_s=1.0,
            skew_s=0.0,
        ),
        accounts=DynamoAccountStore(Table(dynamodb, names.accounts), clock),
        queue=SqsTaskQueue(clients(queues).sqs, names.queue_url, names.dead_letter_url, clock, names.express_url),
        registry=DynamoWorkerRegistry(Table(dynamodb, names.packages), clock, KEPT_S),
        blobs=S3BlobStore(lambda: clients(blobs).s3, names.bucket, clock),
        ids=ids,
        transfer=transfer,
    )


def name_of(folder: Path) -> str:
    """Return the name of a folder's resources."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:16]


def let_queue_go_by(clock: Clock) -> None:
    """Set moto's queues to this clock."""
    ticks = count()  # no time comes twice: a period that ends at an instant is over at that instant
    moto.sqs.models.unix_time = lambda *_: clock.now() + next(ticks) * 1e-6  # type: ignore[attr-defined]
    moto.sqs.models.unix_time_millis = lambda *_: clock.now() * 1000 + next(ticks) * 1e-3  # type: ignore[attr-defined]


@contextmanager
def moto_at(clock: SetClock) -> Iterator[str]:
    """Start moto and set its links and their checks to the test's clock."""

    def now() -> float:
        return time.time() + clock.now() - NOW

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines.in_front_of_moto, "now", now)
        patch.setattr("botocore.auth.get_current_datetime", lambda: datetime.fromtimestamp(now(), UTC))
        yield engines.moto()


@contextmanager
def on_moto(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters on moto, whose queue uses the test's clock."""
    let_queue_go_by(clock)
    with moto_at(clock) as endpoint:
        yield stores(name_of(folder), clock, endpoint, endpoint, endpoint)


@contextmanager
def on_dynamodb_local(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters with tables on AWS's own engine, the rest on moto."""
    tables = engines.dynamodb_local()
    with moto_at(clock) as others:
        yield stores(name_of(folder) + "-d", clock, tables, others, others)


@contextmanager
def on_elasticmq(folder: Path, clock: SetClock) -> Iterator[Stores]:
    queues = engines.elasticmq()
    with moto_at(clock) as others:
        yield stores(name_of(folder) + "-e", clock, others, queues, others)


@contextmanager
def on_engines(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters with tables on AWS's own engine and queues on ElasticMQ, which serve many concurrent callers."""
    tables, queues = engines.dynamodb_local(), engines.elasticmq()
    with moto_at(clock) as others:
        yield stores(name_of(folder) + "-de", clock, tables, queues, others)


@contextmanager
def on_ministack(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters on ministack, which `make e2e` deploys to."""
    endpoint = engines.ministack()
    yield stores(name_of(folder) + "-m", clock, endpoint, endpoint, endpoint)


@contextmanager
def on_versitygw(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Yield adapters with blobs on a server that checks signatures, the rest on moto."""
    blobs, others = engines.versitygw(), engines.moto()
    yield stores(name_of(folder) + "-v", clock, others, others, blobs)
