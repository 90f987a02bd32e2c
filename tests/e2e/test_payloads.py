"""Payloads above the limits of messages travel by links to S3, in both directions."""

import hashlib
import random
from threading import Event

import pytest

from cloudpar_protocol.limits import BODY_BYTES, INLINE_CODE_BYTES, INLINE_DATA_BYTES, INLINE_RESULT_BYTES, WHOLE_BYTES
from cloudpar_protocol.payloads import Parts
from cloudpar_protocol.transport.parted_upload import PartedUpload
from support.customer import Customer

from .deployment import Deployment


def test_large_arguments_and_results_travel_by_links(cluster: Deployment) -> None:
    generator = random.Random(3)
    payloads = [generator.randbytes(size) for size in (3 * BODY_BYTES, INLINE_DATA_BYTES + 1, 10, INLINE_RESULT_BYTES)]
    with Customer(cluster, "large").pool() as pool:
        assert list(pool.map(lambda payload: payload[::-1], payloads)) == [payload[::-1] for payload in payloads]
        assert pool.submit(bytes, 2 * BODY_BYTES).result() == bytes(2 * BODY_BYTES)


def test_large_task_code_is_uploaded_once(cluster: Deployment) -> None:
    table = random.Random(4).randbytes(100 * INLINE_CODE_BYTES)

    def digest(number: int) -> str:
        return hashlib.sha256(table + bytes([number])).hexdigest()

    with Customer(cluster, "code").pool() as pool:
        for _ in range(2):
            assert list(pool.map(digest, range(5))) == [digest(number) for number in range(5)]


def test_the_largest_payloads_travel_in_parts(cluster: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    """The task data of a package, and one result, are both uploaded in parts."""
    run, done = PartedUpload.run, Event()

    def noted(parted: PartedUpload, parts: Parts) -> None:
        run(parted, parts)
        done.set()

    monkeypatch.setattr(PartedUpload, "run", noted)
    generator = random.Random(5)
    payloads = [generator.randbytes(WHOLE_BYTES // 4) for _ in range(5)]
    with Customer(cluster, "parts").pool() as pool:
        assert list(pool.map(lambda payload: hashlib.sha256(payload).digest(), payloads)) == [
            hashlib.sha256(payload).digest() for payload in payloads
        ]
        assert done.is_set()
        assert pool.submit(bytes, WHOLE_BYTES + 1).result() == bytes(WHOLE_BYTES + 1)
