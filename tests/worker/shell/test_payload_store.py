"""PayloadStore: what one account's leases leave there does not reach another account."""

import hashlib
import struct
from itertools import accumulate

import pytest

from cloudpar_protocol.payloads import BlobData, BlobRef, Link, TaskCode
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.shell.code_store import code_key
from cloudpar_worker.shell.master_client import PayloadRefused
from cloudpar_worker.shell.payload_store import TABLE_TASKS, TOO_LARGE_TASKS, PayloadStore, TooLarge
from support.leases import code_from, lease_of

MINE = b"a secret function"
LIMIT = 10**9


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
    store = PayloadStore(Client({"mine": MINE, "theirs": b"any"}), LIMIT)  # type: ignore[arg-type]
    store.fetch(mine, (0, 1))
    assert store.codes.of(mine) == MINE
    with pytest.raises(PayloadRefused, match="hash"):
        store.fetch(theirs, (0, 1))
    with pytest.raises(KeyError):
        store.codes.of(theirs)
    store.codes.trim({code_key(mine)})
    assert store.codes.of(mine) == MINE


def blob_of(items: list[bytes], zeros: int = 0) -> bytes:
    """Items and the table of their offsets, after this many tables of empty items."""
    offsets = [0, *accumulate(map(len, items))]
    return b"".join(items) + bytes(8 * zeros) + struct.pack(f"<{len(offsets)}Q", *offsets)


def over(body: bytes, tasks: int, *, key: str = "data/one", offset: int = 0) -> Lease:
    """A lease of a package with this many tasks, whose data is this blob from `offset` on."""
    data = BlobData(BlobRef(key, len(body) - offset, offset))
    return lease_of(code_from(MINE), tasks, data=data, data_link=Link("GET", key))


def test_packages_with_other_numbers_of_tasks_over_one_blob_get_tables_of_their_own() -> None:
    """A client chooses the key and the number of tasks. The second download once raised IndexError, which ended the
    agent with the tasks of all accounts.
    """
    body = blob_of([], zeros=100)
    store = PayloadStore(Client({"data/one": body}), LIMIT)  # type: ignore[arg-type]
    one, many = over(body, 1), over(body, 100)
    assert store.fetch(one, (0, 1))[0] == (0, 1)
    assert store.fetch(many, (50, 100))[0] == (50, 100)
    assert store.items(many, 50, 100) == [b""] * 50


def test_a_blob_too_short_for_the_table_of_its_tasks_is_refused() -> None:
    body = blob_of([b"a"])
    store = PayloadStore(Client({"data/one": body}), LIMIT)  # type: ignore[arg-type]
    with pytest.raises(PayloadRefused, match="too short for 100 tasks"):
        store.fetch(over(body, 100), (0, 100))


def test_the_offsets_of_a_chunk_of_very_many_tasks_are_downloaded_in_parts() -> None:
    """The client chooses the number. Each offset takes 40 bytes here, and each download once read all of them again."""
    tasks = TABLE_TASKS + 10
    body = blob_of([b""] * tasks)
    store = PayloadStore(Client({"data/one": body}), LIMIT)  # type: ignore[arg-type]
    lease = over(body, tasks)
    assert store.fetch(lease, (0, tasks))[0] == (0, TABLE_TASKS)
    assert store.fetch(lease, (TABLE_TASKS, tasks))[0] == (TABLE_TASKS, tasks)
    assert len(store.items(lease, TABLE_TASKS - 1, TABLE_TASKS + 1) or ()) == 2


def test_data_that_no_executor_can_hold_is_not_downloaded() -> None:
    body = blob_of([b"abc", b"abcd"])
    store = PayloadStore(Client({"data/one": body}), 3)  # type: ignore[arg-type]
    lease = over(body, 2)
    with pytest.raises(TooLarge) as raised:
        store.fetch(lease, (1, 2))
    assert (raised.value.tasks, raised.value.payload_bytes) == ((1, 2), 4)
    assert store.fetch(lease, (0, 1))[0] == (0, 1)


def test_code_that_no_executor_can_hold_is_not_downloaded() -> None:
    code = TaskCode(hashlib.sha256(MINE).hexdigest(), blob=BlobRef("code/mine", len(MINE)))
    lease = lease_of(code, 10**6, code_link=Link("GET", "mine"))
    store = PayloadStore(Client({}), len(MINE) - 1)  # type: ignore[arg-type]
    with pytest.raises(TooLarge) as raised:
        store.fetch(lease, (0, 10**6))
    assert (raised.value.tasks, raised.value.payload_bytes) == ((0, TOO_LARGE_TASKS), len(MINE))


def test_code_and_data_count_together() -> None:
    code = TaskCode(hashlib.sha256(MINE).hexdigest(), blob=BlobRef("code/mine", len(MINE)))
    body = blob_of([b"abc"])
    links = {"code_link": Link("GET", "mine"), "data_link": Link("GET", "data")}
    lease = lease_of(code, 1, data=BlobData(BlobRef("data", len(body))), **links)
    for limit, fits in ((len(MINE) + 3, True), (len(MINE) + 2, False)):
        store = PayloadStore(Client({"mine": MINE, "data": body}), limit)  # type: ignore[arg-type]
        if fits:
            store.fetch(lease, (0, 1))
        else:
            with pytest.raises(TooLarge):
                store.fetch(lease, (0, 1))
