"""Leases for the worker's tests, made as a client and a master make them."""

import hashlib
import pickle
import struct
import sys
from collections.abc import Callable, Sequence
from itertools import accumulate, count
from typing import Any

import cloudpickle

from cloudpar_protocol.payloads import BlobRef, InlineData, RangeData, TaskCode
from cloudpar_protocol.worker_messages import Lease

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
_numbers = count(1)


def code_of(function: Callable[..., Any]) -> TaskCode:
    """The task code of a function, pickled by value as for a script."""
    module = sys.modules[function.__module__]
    cloudpickle.register_pickle_by_value(module)
    try:
        return code_from(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def code_from(pickled: bytes) -> TaskCode:
    return TaskCode(hashlib.sha256(pickled).hexdigest(), pickled)


def lease_of(function: Callable[..., Any] | TaskCode, length: int, **changes: Any) -> Lease:
    """A chunk [0, length) of a package of its own over a range."""
    number = next(_numbers)
    start = changes.pop("start", 0)
    fields: dict[str, Any] = {
        "package_id": f"package-{number}",
        "lease_id": f"lease-{number}",
        "receipt": f"receipt-{number}",
        "start": start,
        "end": start + length,
        "generation": 1,
        "ranges": [(start, start + length)],
        "account": "account-1",
        "lease_s": 1.5,
        "code": function if isinstance(function, TaskCode) else code_of(function),
        "data": RangeData(0, 1),
        "tasks": start + length,
        "python": PYTHON,
        "task_timeout_s": 3600.0,
        "budget_us": 10**15,
    }
    return Lease(**(fields | changes))


def inline(values: Sequence[Any]) -> InlineData:
    return InlineData([pickle.dumps(value) for value in values])


def data_blob(values: Sequence[Any], key: str, dumps: Callable[[Any], bytes] = pickle.dumps) -> tuple[bytes, BlobRef]:
    """The bytes of a package's data, as BlobData describes them, and their reference."""
    items = [dumps(value) for value in values]
    offsets = [0, *accumulate(len(item) for item in items)]
    body = b"".join(items) + struct.pack(f"<{len(offsets)}Q", *offsets)
    return body, BlobRef(key, len(body))
