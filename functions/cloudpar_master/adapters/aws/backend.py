"""Makes a master on AWS from environment variables, which name its tables, queues and bucket."""

import os
from collections.abc import Mapping

import msgspec

from cloudpar_master.adapters.key_safe import AesGcmSafe
from cloudpar_master.adapters.system import RandomIds, SystemClock
from cloudpar_master.core.fleet_size import HostShape
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_master.services.backend import Backend, hash_token
from cloudpar_master.services.result_pages import EARLIER_KEPT_BYTES
from cloudpar_protocol.limits import INLINE_CODE_BYTES

from .account_store import DynamoAccountStore
from .blob_store import S3BlobStore
from .clients import Clients
from .fleet import AutoScalingFleet
from .fleet_lock import FleetLock
from .objects import Objects
from .package_store import DAY_S, DynamoPackageStore
from .parameter_key import ParameterKey
from .table import Table
from .task_queue import SqsTaskQueue
from .task_roles import StsTaskRoles
from .worker_registry import DynamoWorkerRegistry

POLICY = Policy(
    lease_s=180.0,
    chunk_target_us=12_000_000,
    longest_chunk_us=180_000_000,
    shares_chunks=True,
    first_window=32,
    largest_window=400,
    slice_us=90_000_000,
    kept_bytes=EARLIER_KEPT_BYTES + INLINE_CODE_BYTES,
    fleet_memory_s=360.0,
    open_packages=2,
    open_small_packages=6,
    looks_at_end=False,
    saves_first_sent=True,
    send_again_s=60.0,
    fold_pause_s=0.5,
    fold_bytes=512 * 1024,
    longest_await_s=30.0,
    holds_requests=False,
    requests_per_s=20.0,
    request_burst=200,
    running_packages=500,
    grace_s=180.0,
)
"""The policy on AWS. Each chunk costs requests to AWS, so chunks are long. A fleet takes minutes to start, so packages
wait longer for workers. CLOUDPAR_POLICY can override each of these values. `requests_per_s` and `request_burst` apply
to each warm instance of a Lambda function separately (services.request_rate)."""

MARGIN_S = 7 * DAY_S
"""Seconds for which rows are kept beyond the longest life of their package: time for clocks that differ, for late
retries, and for repairs."""


def from_environment(environment: Mapping[str, str] = os.environ, *, worker_token: bool = True) -> Backend:
    """Make the master that the environment of the Lambda functions describes.

    Args:
        environment: CLOUDPAR_PACKAGE_TABLE, CLOUDPAR_ACCOUNT_TABLE, CLOUDPAR_QUEUE_URL, CLOUDPAR_DEAD_LETTER_QUEUE_URL,
            CLOUDPAR_BUCKET; optional CLOUDPAR_EXPRESS_QUEUE_URL, CLOUDPAR_WORKER_TOKEN_SECRET, CLOUDPAR_KEY_PARAMETER,
            CLOUDPAR_FLEET_GROUP, CLOUDPAR_FLEET_HOST (JSON, the fields of core.fleet_size.HostShape) and
            CLOUDPAR_POLICY (JSON, any fields of core.policy.Policy).
        worker_token: Whether to read the workers' token: only functions that check tokens need it.

    Raises:
        KeyError: The environment lacks one of the names that are not optional.
        msgspec.DecodeError: CLOUDPAR_POLICY is not a JSON object, or not a valid policy.
        ClientError, BotoCoreError: The workers' token cannot be read, or no AWS region is configured.
    """
    clients, clock, ids = Clients(), SystemClock(), RandomIds()
    policy = read_policy(environment.get("CLOUDPAR_POLICY", ""))
    kept_s = policy.lifetime_s + policy.retention_s + policy.tombstone_s + MARGIN_S
    queue_url, dead_letter_url = environment["CLOUDPAR_QUEUE_URL"], environment["CLOUDPAR_DEAD_LETTER_QUEUE_URL"]
    express_url = environment.get("CLOUDPAR_EXPRESS_QUEUE_URL", "")
    secret = environment.get("CLOUDPAR_WORKER_TOKEN_SECRET", "") if worker_token else ""
    bucket, parameter = environment["CLOUDPAR_BUCKET"], environment.get("CLOUDPAR_KEY_PARAMETER", "")
    table, objects = Table(clients.dynamodb, environment["CLOUDPAR_PACKAGE_TABLE"]), Objects(lambda: clients.s3, bucket)
    group, shape = environment.get("CLOUDPAR_FLEET_GROUP", ""), environment.get("CLOUDPAR_FLEET_HOST", "")
    lock = FleetLock(table, clock, ids, DAY_S)
    accounts = DynamoAccountStore(Table(clients.dynamodb, environment["CLOUDPAR_ACCOUNT_TABLE"]), clock)
    return Backend(
        packages=DynamoPackageStore(table, objects, clock, ids, kept_s),
        accounts=accounts,
        queue=SqsTaskQueue(clients.sqs, queue_url, dead_letter_url, clock, express_url),
        registry=DynamoWorkerRegistry(table, clock, DAY_S),
        blobs=S3BlobStore(lambda: clients.s3, bucket, clock),
        clock=clock,
        ids=ids,
        policy=policy,
        worker_token_hash=_read_token(clients, secret) if secret else "",
        safe=AesGcmSafe(ParameterKey(lambda: clients.parameters, parameter)) if parameter else None,
        admin_token_hash="",  # operators have an AWS identity instead
        roles=StsTaskRoles(accounts, lambda: clients.sts, clock, clients.region),
        only_made_tokens=True,  # each look-up of a token costs a read, which strangers could cause
        fleet=AutoScalingFleet(lambda: clients.autoscaling, group, clock, lock, read_shape(shape))
        if group
        else StandingFleet(),
    )


def read_policy(text: str) -> Policy:
    """Return POLICY with the fields that a JSON object replaces. An empty text replaces no field.

    Raises:
        msgspec.DecodeError: The text is not a JSON object, or one of its fields is unknown or has a wrong value.

    >>> read_policy('{"lease_s": 30}').lease_s
    30.0
    """
    figures = {**msgspec.to_builtins(POLICY), **msgspec.json.decode(text or "{}", type=dict[str, float | bool])}
    return msgspec.convert(figures, Policy, strict=False)


def read_shape(text: str) -> HostShape:
    """Return what a host of the fleet offers. An empty text stands for the smallest host.

    During an update the text may be empty for some seconds, because CloudFormation updates the code of a function
    before its environment.

    Raises:
        msgspec.DecodeError: The text is not a JSON object with whole numbers.

    >>> read_shape('{"executors": 4, "chunks_per_executor": 2}')
    HostShape(executors=4, chunks_per_executor=2)
    """
    default = HostShape(executors=2, chunks_per_executor=2)
    return default._replace(**msgspec.json.decode(text or "{}", type=dict[str, int]))


def _read_token(clients: Clients, secret: str) -> str:
    return hash_token(clients.secrets.get_secret_value(SecretId=secret)["SecretString"])
