"""PayloadStore: what one account's leases leave there does not reach another account."""

import hashlib

import pytest

from cloudpar_protocol.payloads import BlobRef, Link, TaskCode
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.shell.master_client import PayloadRefused
from cloudpar_worker.shell.payload_store import PayloadStore, code_key
from worker.leases import lease_of

MINE = b"a secret function"


class Client:
    """Downloads the bodies of these URLs."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self._bodies = bodies

    def get(self, link: Link, start: int, end: int) -> bytes:
        return self._bodies[link.url][start:end]


def lease(account: str, body: bytes) -> Lease:
    """A lease that names the hash of MINE, with a link to some code of its account."""
    code = TaskCode(hashlib.sha256(MINE).hexdigest(), blob=BlobRef(f"code/{account}", len(body)))
    return lease_of(code, 1, account=account, code_link=Link("GET", account))


def test_no_account_gets_the_code_of_another_one_by_its_hash() -> None:
    mine, theirs = lease("mine", MINE), lease("theirs", b"any")
    store = PayloadStore(Client({"mine": MINE, "theirs": b"any"}))  # type: ignore[arg-type]
    store.fetch(mine, (0, 1))
    assert store.code(mine) == MINE
    with pytest.raises(PayloadRefused, match="hash"):
        store.fetch(theirs, (0, 1))
    with pytest.raises(KeyError):
        store.code(theirs)
    store.trim({code_key(mine)})
    assert store.code(mine) == MINE
