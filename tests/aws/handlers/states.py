"""Packages whose folds leave every kind of effect behind, for the next function that folds them."""

import os
import time
from typing import Any

from msgspec.structs import replace

from aws import engines
from aws.stores import clients
from cloudpar_master.adapters.aws.package_store import FORGET_BATCH
from cloudpar_master.core.events import Published
from cloudpar_master.core.head import BLOB_BYTES, Head, OpenRange
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode, TaskData, TaskResult
from support.heads import altered
from support.packages import make_head, make_results, make_spec
from support.stores import Stores

from .conftest import USER_TOKEN

LARGE = os.urandom(20_000)
"""A result, or task data, that does not fit into a row."""


def create_accounts(stack: Stores) -> None:
    """Create an account with quota and the token USER_TOKEN, and one whose quota another package has reserved."""
    stack.accounts.create(AccountRecord("a", "ann", hash_token(USER_TOKEN), "active", 10**12, 0, 0, 0.0))
    stack.accounts.create(AccountRecord("poor", "joe", hash_token("poor"), "active", 100, 0, 0, 0.0))
    stack.accounts.reserve("poor", "other", 0, 100)


def create_package(
    stack: Stores, package_id: str, *, account: str = "a", blob: bool = False, large: bool = False, **more: Any
) -> Head:
    """Create a package that started two minutes ago, with these attributes of its head.

    Args:
        blob: Its task data and task code were uploaded.
        large: Its task data travelled inline and is too large for a row.
    """
    began = time.time() - 120
    data: TaskData | None = BlobData(BlobRef(f"data/{account}/{package_id}", 100)) if blob else None
    if large:
        data = InlineData([LARGE] * 4)
    spec = replace(make_spec(package_id, data=data, started_at=began), account_id=account)
    if blob:
        code = TaskCode("0" * 64, blob=BlobRef(f"code/{account}/{'0' * 64}", 4))
        spec = replace(spec, start=replace(spec.start, code=code, seal=bytes(16)))
    head = altered(make_head(spec, 1), **more)
    stack.packages.create(spec, head)
    return head


def publication(package_id: str, result: TaskResult) -> tuple[str, Published]:
    """Return a publication that is still in an inbox."""
    return f"p#{package_id}#000000", Published(worker_id="w", executors=1, generation=1, results=[result])


def create_all(stack: Stores) -> list[str]:
    """Create a package for each effect and return their ids."""
    now = time.time()
    begun: dict[str, Any] = {"open": [OpenRange(0, 2, 1, sent=True)], "cursor": 2, "wanted_us": 1000}
    # A chunk that was lost once is sent by the main queue.
    both = [OpenRange(0, 1, 1, sent=True), OpenRange(1, 2, 1, losses=1)]
    over: dict[str, Any] = {"state": "completed", "cursor": 4, "done": 4, "ended_at": now - 100}
    freed = over | {"settled": True, "acknowledged_at": now - 90}
    put_object("results/to-delete/lease/0")
    made = [
        create_package(stack, "to-go-on", **begun | {"open": both}, reserved_us=10_000),
        create_package(stack, "without-quota", account="poor", **begun),
        create_package(stack, "to-settle", **over, used_us=10, reserved_us=100),
        create_package(stack, "to-delete", **freed, stored_bytes=BLOB_BYTES, blob=True),
        create_package(stack, "to-delete-large", **freed, stored_bytes=BLOB_BYTES, large=True),
        create_package(stack, "to-forget", **freed, deleted_at=now - 200_000),
    ]
    stack.packages.append("to-go-on", [publication("x", TaskResult(0, "ok", 10, data=LARGE))])
    # More rows than one transaction deletes.
    for version in range(2, FORGET_BATCH + 4):
        tombstone = replace(made[-1], version=version, page=version)
        assert stack.packages.save(tombstone, now - 100, make_results(version))
    return [head.package_id for head in made]


def put_object(key: str) -> None:
    """Store an object, as a client's upload does."""
    clients(engines.moto()).s3.put_object(Bucket=os.environ["CLOUDPAR_BUCKET"], Key=key, Body=b"uploaded")


def lose(*bodies: str) -> None:
    """Put messages into the dead-letter queue, as SQS does after too many deliveries."""
    for body in bodies:
        clients(engines.moto()).sqs.send_message(
            QueueUrl=os.environ["CLOUDPAR_DEAD_LETTER_QUEUE_URL"], MessageBody=body, MessageGroupId=body,
            MessageDeduplicationId=body,
        )  # fmt: skip
