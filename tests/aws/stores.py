"""The AWS adapters on what stands in for AWS, for this folder's tests and for the suites of the ports."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import moto.sqs.models
import urllib3

from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.clients import Clients
from cloudpar_master.adapters.aws.objects import Objects
from cloudpar_master.adapters.aws.package_store import DynamoPackageStore
from cloudpar_master.adapters.aws.table import Table
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_master.adapters.embedded.system import RandomIds
from cloudpar_protocol.payloads import Link
from master.asgi import Answer
from master.stores import Factory, SetClock, Stores

from . import engines

REGION = "us-east-1"
KEPT_S = 30 * 86400.0

_INDEXES = {"due": ("due", "due_at"), "uncut": ("uncut", "uncut_since"), "account": ("account", "started_at")}
_http = urllib3.PoolManager(retries=False, maxsize=16)


class Names(NamedTuple):
    """What one deployment's resources are called."""

    packages: str
    accounts: str
    queue_url: str
    dead_letter_url: str
    bucket: str


@cache
def clients(endpoint: str) -> Clients:
    """Clients are slow to make, and good for many threads."""
    made = Clients(REGION, endpoint)
    _ = made.dynamodb, made.sqs, made.s3
    return made


def create_tables(at: Clients, name: str) -> tuple[str, str]:
    """The two tables, as the stack makes them."""
    key = [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}]
    types = {"pk": "S", "sk": "S"} | {hashed: "S" for hashed, _ in _INDEXES.values()}
    types |= {ranged: "N" for _, ranged in _INDEXES.values()}
    indexes: Any = [
        {
            "IndexName": index,
            "KeySchema": [
                {"AttributeName": hashed, "KeyType": "HASH"},
                {"AttributeName": ranged, "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["running"]}
            if index == "account"
            else {"ProjectionType": "KEYS_ONLY"},
        }
        for index, (hashed, ranged) in _INDEXES.items()
    ]
    packages, accounts = f"{name}-packages", f"{name}-accounts"
    defined: Any = {"KeySchema": key, "BillingMode": "PAY_PER_REQUEST"}
    attributes: Any = [{"AttributeName": n, "AttributeType": t} for n, t in types.items()]
    at.dynamodb.create_table(
        TableName=packages, AttributeDefinitions=attributes, GlobalSecondaryIndexes=indexes, **defined
    )
    at.dynamodb.create_table(TableName=accounts, AttributeDefinitions=attributes[:2], **defined)
    return packages, accounts


def create_queues(at: Clients, name: str) -> tuple[str, str]:
    """The queue and the one for its dead letters."""
    fifo = {"FifoQueue": "true", "ContentBasedDeduplication": "false"}
    dead = at.sqs.create_queue(QueueName=f"{name}-dead.fifo", Attributes=fifo)["QueueUrl"]  # type: ignore[arg-type]
    arn = at.sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 4}}'
    live = at.sqs.create_queue(
        QueueName=f"{name}.fifo",
        Attributes={**fifo, "RedrivePolicy": redrive, "VisibilityTimeout": "60"},  # type: ignore[dict-item]
    )["QueueUrl"]
    return live, dead


@cache
def create(name: str, tables: str, queues: str, blobs: str) -> Names:
    """A deployment's resources; made once."""
    bucket = f"bucket-{name}"
    clients(blobs).s3.create_bucket(Bucket=bucket)
    return Names(*create_tables(clients(tables), name), *create_queues(clients(queues), name), bucket)


def transfer(link: Link, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
    """Do exactly what a link says, with a body of whatever length it has."""
    sent = {**link.headers, **(headers or {})}
    if link.method == "PUT":
        sent["Content-Length"] = str(len(body))
    answer = _http.request(link.method, link.url, body=body if link.method == "PUT" else None, headers=sent)
    return Answer(answer.status, {name.lower(): value for name, value in answer.headers.items()}, answer.data)


def stores(names: Names, clock: SetClock, tables: str, queues: str, blobs: str) -> Stores:
    """One process's adapters."""
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
        queue=SqsTaskQueue(clients(queues).sqs, names.queue_url, names.dead_letter_url, clock),
        blobs=S3BlobStore(lambda: clients(blobs).s3, names.bucket, clock),
        ids=ids,
        transfer=transfer,
    )


SIGNED = "moto checks no signature of a link; test_blob_store.py checks what is signed"
UPLOADED = "S3 answers 412 to the same upload as well; its holder takes that for success"
DOTS = "an HTTP client resolves the dots of a path; no key of ours has any"
ATTEMPTS = "moto knows no attempt ids; test_task_queue.py checks that they are sent"
SURFACED = "since when a message has waited that surfaced again, SQS does not say"
DELETED = "moto forgets what it deduplicates by when a message is deleted; test_task_queue.py has it on ElasticMQ"
EXPIRED = "moto takes a receipt that has expired; test_task_queue.py has AWS's answer"
DEAD = "a dead letter that was looked at is hidden for a while, as every message of SQS"
MANY = "hundreds of calls, which moto answers one after the other; DynamoDB Local answers them"

DIFFERENT = {
    "test_a_group_is_sent_once_in_five_minutes": DELETED,
    "test_a_link_expires": SIGNED,
    "test_a_link_is_good_for_one_key": SIGNED,
    "test_a_link_is_good_for_one_method": SIGNED,
    "test_a_link_is_not_good_without_its_signature": SIGNED,
    "test_a_receipt_that_is_no_longer_good_is_ignored": EXPIRED,
    "test_an_attempt_again_brings_the_same": ATTEMPTS,
    "test_an_attempt_again_brings_what_is_left": ATTEMPTS,
    "test_an_upload_is_what_its_link_says": SIGNED,
    "test_any_name_is_a_key": DOTS,
    "test_delivered_too_often_it_is_dead": DEAD,
    "test_how_long_it_lay": SURFACED,
    "test_keys_are_apart": DOTS,
    "test_no_character_of_a_links_query_may_change": SIGNED,
    "test_one_attempt_by_many_takes_no_more_than_one_would": ATTEMPTS,
    "test_the_dead_stay_until_they_are_deleted": DEAD,
    "test_the_same_upload_again_succeeds": UPLOADED,
}
"""Tests of the ports' suites that AWS or its stand-in answers otherwise, and why that is right here."""

NOT_ON_MOTO = {"test_a_cached_spec_is_the_stored_one": MANY, "test_the_books_always_balance": MANY}
TABLES = {"test_accounts", "test_heads", "test_inbox", "test_pages", "test_quota", "test_registry"}


def conforming(suite: str, test: str) -> list[Factory]:
    """The factories that a test of a port's suite runs on."""
    if test in DIFFERENT:
        return []
    factories: list[Factory] = [] if test in NOT_ON_MOTO else [on_moto]
    return [*factories, on_dynamodb_local] if suite in TABLES else factories


def name_of(folder: Path) -> str:
    """What the resources that belong to a folder are called."""
    return hashlib.sha256(str(folder).encode()).hexdigest()[:16]


@contextmanager
def on_moto(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Everything on moto, whose queue goes by the test's clock."""
    endpoint = engines.moto()
    ticks = count()  # never the same time twice: what ends at a time has ended when it is that time
    moto.sqs.models.unix_time = lambda *_: clock.now() + next(ticks) * 1e-6  # type: ignore[attr-defined]
    moto.sqs.models.unix_time_millis = lambda *_: clock.now() * 1000 + next(ticks) * 1e-3  # type: ignore[attr-defined]
    names = create(name_of(folder), endpoint, endpoint, endpoint)
    yield stores(names, clock, endpoint, endpoint, endpoint)


@contextmanager
def on_dynamodb_local(folder: Path, clock: SetClock) -> Iterator[Stores]:
    """Tables on AWS's own engine, the rest on moto."""
    tables, others = engines.dynamodb_local(), engines.moto()
    names = create(name_of(folder) + "-d", tables, others, others)
    yield stores(names, clock, tables, others, others)
