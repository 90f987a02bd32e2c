"""Sends a payload to a worker and back, like a map with large values, and says which step fails."""

import io
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from cloudpar import Pool, reference
from cloudpar._client.connection import Connection
from cloudpar._client.uploads import upload
from cloudpar._serialization.blob import Blob
from cloudpar_protocol.errors import CloudparError

from .finding import Finding

PAYLOAD_BYTES = 1_000_000
"""The size of the payload, in bytes: more than a message carries inline."""

WAIT_S = 20.0
"""How long to wait for each task of the check, in seconds; for the first task this includes the wait for a worker."""


def check_payloads(connection: Connection, token: str, wait_s: float = WAIT_S) -> Iterator[Finding]:
    """Send a payload from this machine to the blob store, from there to a worker, and back to this machine.

    Args:
        connection: The connection to the master, with an account's token.
        token: The account's token, with which the function opens a pool.
        wait_s: The longest time to wait for each task, in seconds.

    Raises:
        CloudparError: The master refuses a request of the pool that runs the tasks, or does not answer.
    """
    try:
        upload(connection, "data", Blob(io.BytesIO(bytes(PAYLOAD_BYTES)), PAYLOAD_BYTES))
    except CloudparError as error:
        yield Finding("payload from here", "bad", f"the upload of {PAYLOAD_BYTES:,} bytes failed: {error}")
        return
    yield Finding("payload from here", "ok", f"{PAYLOAD_BYTES:,} bytes were uploaded")
    with Pool(connection.endpoint, token, patience_s=wait_s, progress=False) as pool:
        yield from _by_worker(pool, wait_s)


def _by_worker(pool: Pool, wait_s: float) -> Iterator[Finding]:
    # The tasks use references, and therefore MessagePack, so that workers of any Python version can run them.
    try:
        _result(pool.submit(reference("builtins:len"), b""), wait_s)
    except TimeoutError:
        text = f"none took a task within {wait_s:.0f} s, so payloads could not be tried: start one by `cloudpar worker`"
        yield Finding("worker", "missing", text)
        return
    except CloudparError as error:
        yield Finding("worker", "bad", str(error))
        return
    yield Finding("worker", "ok", "one ran a task")
    yield _moved(
        "payload to a worker", pool.submit(reference("builtins:len"), bytes(PAYLOAD_BYTES)), wait_s,
        "the worker did not download it: its log names the address that does not answer",
    )  # fmt: skip
    yield _moved(
        "payload from a worker", pool.submit(reference("builtins:bytes"), PAYLOAD_BYTES), wait_s,
        "the worker did not upload it, or its download here failed: the worker's log and the lines above name the "
        "address that does not answer",
    )  # fmt: skip


def _moved(what: str, future: Future[Any], wait_s: float, otherwise: str) -> Finding:
    try:
        _result(future, wait_s)
    except TimeoutError:
        return Finding(what, "bad", f"{PAYLOAD_BYTES:,} bytes did not arrive within {wait_s:.0f} s: {otherwise}")
    except CloudparError as error:
        return Finding(what, "bad", str(error))
    return Finding(what, "ok", f"{PAYLOAD_BYTES:,} bytes arrived")


def _result(future: Future[Any], wait_s: float) -> None:
    try:
        future.result(wait_s)
    finally:
        future.cancel()
