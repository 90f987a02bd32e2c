"""infra/lib/grants.ts allows each function what it does, and nothing else.

Each function does everything that it can do, and the calls that this takes are compared with its policy.
"""

import os
import re
import secrets
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

import botocore.session
import pytest
from botocore import xform_name
from msgspec.structs import replace

import cloudpar_master.adapters.aws
from aws import engines, template
from aws.stores import clients
from aws.stubs import Stubber, stubbed
from aws.template import Right
from cloudpar_master.adapters.aws import task_queue
from cloudpar_master.adapters.aws.account_store import DynamoAccountStore
from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.core.head import SCHEMA, OpenRange
from cloudpar_master.ports import AccountRecord, Fit, Message, Sending, WorkerRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_master.services.chunk_text import ChunkText
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
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.limits import PART_BYTES, WHOLE_BYTES
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode, TaskResult
from cloudpar_protocol.tokens import new_token
from cloudpar_protocol.worker_messages import (
    ExtendLeases,
    GiveBack,
    LeaseRef,
    PrepareResult,
    PrepareResults,
    Publication,
    PublishResults,
    RetrieveTasks,
    Return,
)
from support.stores import Stores

from . import states
from .calls import ask
from .conftest import WORKER_TOKEN, Context, Start
from .recorder import Recorder

GROUP = "arn:AWS::Partition:autoscaling:AWS::Region:AWS::AccountId:autoScalingGroup:id:autoScalingGroupName/"
KEY_PARAMETER = "arn:AWS::Partition:ssm:AWS::Region:AWS::AccountId:parameter/cloudpar/dev/accounts-key"
TASK_ROLE = "arn:aws:iam::123456789012:role/cloudpar/ann"
UNUSED_LINK = Right("s3:GetObject", "StorageBlobs/warm-up")
OLD = "1" * 64
"""The hash of task code that was uploaded long ago."""

LARGE_BYTES = WHOLE_BYTES + 1
PARTS = [zlib.crc32(b"part")] * -(-LARGE_BYTES // PART_BYTES)


@pytest.fixture
def recorder(stack: Stores, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Record what functions do that start from now on."""
    monkeypatch.setenv("CLOUDPAR_FLEET_GROUP", "workers")
    names = {
        "CLOUDPAR_PACKAGE_TABLE": "StoragePackages",
        "CLOUDPAR_ACCOUNT_TABLE": "StorageAccounts",
        "CLOUDPAR_BUCKET": "StorageBlobs",
        "CLOUDPAR_QUEUE_URL": "QueueTasks",
        "CLOUDPAR_EXPRESS_QUEUE_URL": "QueueExpress",
        "CLOUDPAR_DEAD_LETTER_QUEUE_URL": "QueueLost",
        "CLOUDPAR_WORKER_TOKEN_SECRET": "StorageWorkerToken",
        "CLOUDPAR_FLEET_GROUP": f"{GROUP}Cloudpar-dev-workers",
        "CLOUDPAR_KEY_PARAMETER": KEY_PARAMETER,
    }
    recorder = Recorder({os.environ[variable]: name for variable, name in names.items()})
    fresh = botocore.session.get_session

    def watched() -> botocore.session.Session:
        session = fresh()
        session.register("provide-client-params", recorder.note)
        return session

    monkeypatch.setattr("botocore.session.get_session", watched)
    monkeypatch.setattr("cloudpar_master.adapters.aws.blob_store.FRESH_S", -1.0)  # every existing blob counts as old
    monkeypatch.setattr("cloudpar_master.adapters.aws.worker_registry.FRESH_S", -1.0)  # each beat is written
    states.create_accounts(stack)
    secret = secrets.token_bytes(32)
    made_elsewhere = AesGcmSafe(lambda: secret).make("a")
    stack.accounts.keep_key("a", made_elsewhere, None)  # its key is lost, so that the account gets a new one
    return recorder


def group(desired: int, *states: str) -> dict[str, Any]:
    instances = [
        {
            "InstanceId": "i-1", "AvailabilityZone": "a", "LifecycleState": state, "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for state in states
    ]  # fmt: skip
    found: dict[str, Any] = {
        "AutoScalingGroupName": "workers", "MinSize": 0, "MaxSize": 1, "DefaultCooldown": 0, "DesiredCapacity": desired,
        "AvailabilityZones": [], "HealthCheckType": "EC2", "CreatedTime": 0, "Instances": instances,
    }  # fmt: skip
    return {"AutoScalingGroups": [found]}


def enlarged(stub: Stubber) -> None:
    """Script the answers to the calls by which a function enlarges an empty fleet."""
    for _ in range(2):
        stub.add_response("describe_auto_scaling_groups", group(0))
    stub.add_response("set_desired_capacity", {})


def client(function: ModuleType, stack: Stores) -> None:
    """Send every request that users send, each as the first one of its kind."""
    ssm: Any = clients(engines.moto()).parameters
    ssm.delete_parameter(Name=os.environ["CLOUDPAR_KEY_PARAMETER"])
    states.put_object(f"code/a/{OLD}")
    states.put_object("results/read/lease/0")
    states.create_package(stack, "read", open=[OpenRange(0, 4, 1, sent=True)], cursor=4, reserved_us=10_000)
    uploaded = TaskResult(0, "ok", 10, blob=BlobRef("results/read/lease/0", 8))
    stack.packages.append("read", [states.publication("y", uploaded)])
    states.create_package(stack, "lonely", open=[OpenRange(0, 4, 1, sent=True)], cursor=4, reserved_us=10_000)

    uploads = [
        Upload(kind="code", size=3, crc32=0, hash=OLD),
        Upload(kind="code", size=3, crc32=0, hash="2" * 64),
        Upload(kind="data", size=3, crc32=0),
        Upload(kind="data", size=LARGE_BYTES, crc32=0, parts_crc32=PARTS),
    ]
    ask(function, routes.HELLO, Hello())
    ask(function, routes.PREPARE_UPLOADS, PrepareUploads(uploads=uploads))
    with stubbed(function.handle.__self__._dispatcher._backend.fleet._client()) as stub:
        enlarged(stub)
        stub.add_response("describe_auto_scaling_groups", group(1))
        stub.add_response("describe_scaling_activities", {"Activities": []})
        message = StartTasks(
            idempotency_key="k", n=100, python="3.11", code=TaskCode("0" * 64, b"c"), data=InlineData([b"d"] * 100)
        )
        started = ask(function, routes.START_TASKS, message)
        states.put_object(f"data/a/{OLD}")
        uploaded_data = BlobData(BlobRef(f"data/a/{OLD}", 8 * 101))
        ask(function, routes.START_TASKS, replace(message, idempotency_key="blob", data=uploaded_data))
        ask(function, routes.AWAIT_TASKS, AwaitTasks(packages=[Cursor(package_id="lonely")]))
    for package_id in ("read", *states.create_all(stack)):
        ask(function, routes.AWAIT_TASKS, AwaitTasks(packages=[Cursor(package_id=package_id)]))
    ask(function, routes.CANCEL_TASKS, CancelTasks(package_id=started.package_id))
    ask(function, routes.ACKNOWLEDGE, Acknowledge(package_ids=["read"]))
    ask(function, routes.LIST_PACKAGES, ListPackages())


def worker(function: ModuleType, stack: Stores) -> None:
    """Send every request that workers send."""

    def call(route: Any, message: Any) -> Any:
        return ask(function, route, message, WORKER_TOKEN)

    create: dict[str, Any] = {"open": [OpenRange(0, 4, 1, sent=True)], "cursor": 4, "reserved_us": 10**9}
    states.create_package(stack, "main", account="with-role", **create)
    stack.queue.send([Sending(main := ChunkText("main", 0, 4, 1).text, main)])
    assert isinstance(stack.accounts, DynamoAccountStore)
    stack.accounts.create(AccountRecord("with-role", "bob", "hash", "active", 10**12, 0, 0, 0.0))
    stack.accounts.keep_task_role("with-role", TASK_ROLE)
    asked = RetrieveTasks(attempt_id="x", worker_id="w", executors=1, chunks=1, credentials=True)
    (later,) = call(routes.RETRIEVE_TASKS, asked).leases
    assert later.credentials is not None
    states.create_package(stack, "blob", blob=True, open=[OpenRange(0, 4, 1, sent=True)], cursor=4, reserved_us=10**9)
    states.create_package(stack, "uncut", reserved_us=10**9)
    token = new_token()
    stack.accounts.create(AccountRecord("own", "lab-3", hash_token(token), "active", 0, 0, 0, 0.0, "worker", 2.0**40))
    bodies = [ChunkText("blob", 0, 4, 1).text, ChunkText("unknown", 0, 4, 1).text]
    stack.queue.send([Sending(body, body, express=True) for body in bodies])
    (lease,) = call(routes.RETRIEVE_TASKS, RetrieveTasks(attempt_id="t", worker_id="w", executors=1, chunks=4)).leases
    call(routes.RETRIEVE_TASKS, RetrieveTasks(attempt_id="u", worker_id="idle", executors=1, chunks=4))
    # The master cuts a package for an idle worker. After its chunks are leased, another worker stays idle.
    idle = (RetrieveTasks(attempt_id=f"v{each}", worker_id="idle", executors=1, chunks=10) for each in range(20))
    assert not all(call(routes.RETRIEVE_TASKS, each).leases for each in idle)
    ref = lease.identity()
    of_lease = {"package_id": lease.package_id, "lease_id": lease.lease_id}
    results = [
        PrepareResult(**of_lease, seq=0, size=3, crc32=0),
        PrepareResult(**of_lease, seq=1, size=LARGE_BYTES, crc32=0, parts_crc32=PARTS),
    ]
    ask(function, routes.PREPARE_RESULTS, PrepareResults(results=results), token)
    of_later = later.identity()
    with patch.object(task_queue, "LOOK_S", 0.0):  # as if the last look at the express queue were long ago
        call(routes.EXTEND_LEASES, ExtendLeases(worker_id="w", leases=[LeaseRef(**of_later)]))
    call(routes.GIVE_BACK, GiveBack(worker_id="w", returns=[Return(**of_later, seq=0, ranges=[(0, 4)], closes=True)]))
    call(routes.EXTEND_LEASES, ExtendLeases(worker_id="w", leases=[LeaseRef(**ref)]))
    call(routes.GIVE_BACK, GiveBack(worker_id="w", returns=[Return(**ref, seq=0, ranges=[(2, 4)])]))
    for seq, package_id in enumerate((lease.package_id, *states.create_all(stack))):
        published = Publication(**ref | {"package_id": package_id}, seq=seq, results=[], closes=True)
        call(routes.PUBLISH_RESULTS, PublishResults(worker_id="w", executors=1, publications=[published]))


def account(function: ModuleType, stack: Stores) -> None:
    """Send every request that the operator sends."""

    def call(route: str, **message: Any) -> None:
        answer = function.handle({"route": route, "body": message}, Context())
        assert answer["status"] in {200, 404}, answer  # 404: this package was due to be forgotten

    call("create_account", idempotency_key="k", name="eve", token_hash="e" * 64, quota_us=1000)
    call("list_accounts", storage=True)
    call("grant_quota", account_id="a", idempotency_key="g", quota_us=500)
    call("rotate_seal", account_id="a", idempotency_key="r")
    call("set_role", account_id="a", task_role=TASK_ROLE)
    call("set_role", account_id="a")
    call("set_network", account_id="a", network="none")
    call("set_network", account_id="a", network="outbound")
    call("list_usage", since="2026-11-24")
    call("list_packages")
    stack.registry.note(WorkerRecord("w", time.time(), "host", 1, Fit((), ("p",))))
    call("list_workers")
    for package_id in states.create_all(stack):
        call("cancel_tasks", package_id=package_id)
    states.create_package(stack, "revoked")
    call("list_packages", limit=1)  # there are more, so the running ones are read, too
    call("revoke_account", account_id="a")


def timer(function: ModuleType, stack: Stores) -> None:
    """Run the timer twice: the first run starts a host, the second one finds a host that is silent.

    One of the lost chunks cannot be reported, so it is put off.
    """
    due = states.create_all(stack)
    states.create_package(stack, "newer", schema=SCHEMA + 1)
    for package_id in (*due, "unreadable"):
        states.lose(ChunkText(package_id, 0, 1, 1).text)
    report = function._timer.lost

    def lost(message: Message) -> Any:
        if message.body.startswith("unreadable"):
            raise Unavailable("x")
        return report(message)

    function._timer.lost = lost
    with stubbed(function._backend.fleet._client()) as stub:
        stub.add_response("describe_auto_scaling_groups", group(0))
        enlarged(stub)
        with pytest.raises(ExceptionGroup, match="some lost chunks could not be reported"):
            function.handle({}, Context())
        stub.add_response("describe_auto_scaling_groups", group(1, "InService"))
        function.handle({}, Context())


EVERYTHING: dict[str, Callable[[ModuleType, Stores], None]] = {
    "client": client, "worker": worker, "account": account, "timer": timer,
}  # fmt: skip

operations: set[str] = set()
"""The operations of all functions; their tests run before the test that reads this."""


def by_lambda(name: str) -> Iterator[Right]:
    """Return what Lambda itself does with a function's role: logs and traces."""
    for action in ("logs:CreateLogStream", "logs:PutLogEvents"):
        yield Right(action, f"Services{name.capitalize()}Log")
    if template.function(name)["TracingConfig"]["Mode"] == "Active":
        for action in ("xray:PutTraceSegments", "xray:PutTelemetryRecords"):
            yield Right(action, "any trace")


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_function_may_do_what_it_does_and_nothing_else(
    name: str, start: Start, stack: Stores, recorder: Recorder
) -> None:
    EVERYTHING[name](start(name), stack)
    operations.update(recorder.operations())
    needs = recorder.needs() - {UNUSED_LINK} | set(by_lambda(name))
    granted = template.grants(name)
    refused = {need for need in needs if not any(grant.covers(need) for grant in granted)}
    idle = {grant for grant in granted if not any(grant.covers(need) for need in needs)}
    assert not refused, f"{name} is not allowed: {listed(refused)}"
    assert not idle, f"{name} never needs: {listed(idle)}"


def listed(rights: set[Right]) -> str:
    return "; ".join(f"{action} on {resource} {prefix}".strip() for action, resource, prefix in sorted(rights))


def test_the_functions_made_every_call_of_the_adapters() -> None:
    """The functions made every call that the adapters contain, except presigned ones, whose names are in strings."""
    sources = "".join(file.read_text() for file in Path(cloudpar_master.adapters.aws.__path__[0]).glob("*.py"))
    called = set(re.findall(r"_client(?:\(\))?\.(\w+)\b(?!\.)", sources)) - {"get_paginator", "generate_presigned_url"}
    named = set(re.findall(r"(?:get_paginator|_presign|generate_presigned_url)\(\s*\"(\w+)\"", sources))
    assert called
    assert named
    assert (called | named) - {xform_name(name) for name in operations} == set()
