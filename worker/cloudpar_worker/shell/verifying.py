"""Verifies the seals of a sealed package, before an executor gets code or data of the package."""

import hashlib
from collections.abc import Sequence
from hmac import compare_digest

from cloudpar_protocol.payloads import SEAL_BYTES, InlineData
from cloudpar_protocol.seals import Seals, is_sealed
from cloudpar_protocol.worker_messages import Lease

from .master_client import PayloadRefused

ADVICE = (
    "it was not run. Its bytes were changed, releases that do not work together meet here, or the master has a new "
    "secret: start the package again, in a new pool; if that fails too, find out what can write to the master's storage"
)


class SealBroken(PayloadRefused):
    """Code or data of a sealed package does not match its hash or its seal, or has no seal. The text says which."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: {ADVICE}")


def damaged(lease: Lease, what: str) -> PayloadRefused:
    """Return the error for a payload that arrived damaged. For a sealed package this is a SealBroken."""
    return PayloadRefused(what) if lease.seal is None else SealBroken(what)


def seals_of(lease: Lease) -> Seals | None:
    """Return the seals of a lease's package; None if the package is not sealed.

    Raises:
        SealBroken: The package is sealed, and the seal of its code or the account's key is missing.
    """
    if lease.seal is None and lease.seal_key is None and not is_sealed(lease.package_id):
        return None
    if lease.seal is None or lease.seal_key is None:
        raise SealBroken("the task code of a sealed package came without its seal")
    return Seals(lease.seal_key, lease.package_id)


def verify(lease: Lease) -> None:
    """Verify the code and data inside the lease of a sealed package. Blobs are verified after their download.

    Raises:
        SealBroken: The code or an item does not match its hash or its seal, or the seal of the code or the account's
            key is missing.
    """
    seals = seals_of(lease)
    if seals is None or lease.seal is None:
        return
    code, data = lease.code, lease.data
    whole = code.inline if code.reference is None else code.reference.encode()
    if whole is not None and hashlib.sha256(whole).hexdigest() != code.hash:
        raise SealBroken("the task code is not what its hash says")
    if not compare_digest(lease.seal, _seal_of_code(seals, lease)):
        raise SealBroken("the task code, or how it is called, is not what its seal says")
    if isinstance(data, InlineData):
        position = 0
        for start, end in lease.ranges:
            last = position + end - start
            theirs = data.seals[SEAL_BYTES * position : SEAL_BYTES * last]
            _verify_items(seals, start, data.items[position:last], theirs)
            position = last


def _seal_of_code(seals: Seals, lease: Lease) -> bytes:
    return seals.code(
        lease.code, lease.data, call=lease.call, codec=lease.codec, python=lease.python, tasks=lease.tasks
    )


def verify_items(lease: Lease, first: int, items: Sequence[memoryview], seals: bytes) -> None:
    """Verify data from a blob: the items of consecutive tasks, of which the first one has the index `first`.

    Raises:
        SealBroken: An item does not match its seal, or the seal of the code or the account's key is missing.
    """
    known = seals_of(lease)
    if known is not None:
        _verify_items(known, first, items, seals)


def _verify_items(known: Seals, first: int, items: Sequence[bytes | memoryview], seals: bytes) -> None:
    if not known.are_data(first, items, seals):
        which = f"task {first}" if len(items) == 1 else f"one of the tasks {first} to {first + len(items) - 1}"
        raise SealBroken(f"the data of {which} is not what its seal says")
