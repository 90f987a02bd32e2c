"""Uploads in parts: which parts are sent how many times after faults."""

import threading
import zlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar_protocol.limits import PART_BYTES, WHOLE_BYTES
from cloudpar_protocol.parts import THREADS, PartedUpload, bounds, checksums, completion, completion_status
from cloudpar_protocol.payloads import Link, Parts

COUNT = 10
SIZE = COUNT * PART_BYTES - 1


class Refused(Exception):
    """A link was refused."""


class Store:
    """Takes parts by links that contain how often they were renewed."""

    def __init__(self) -> None:
        self.sent: Counter[int] = Counter()
        self.completed: list[bytes] = []
        self.renewals = 0
        self.faults: dict[object, list[BaseException]] = {}
        self.most = 0
        self._now = 0
        self._lock = threading.Lock()
        self.meeting: threading.Barrier | None = None

    def parts(self) -> Parts:
        links = [Link("PUT", f"{number} {self.renewals}") for number in range(COUNT)]
        return Parts(upload_id="u", links=links, complete=Link("POST", f"complete {self.renewals}"))

    def put(self, link: Link, start: int, end: int) -> str:
        number, renewals = map(int, link.url.split())
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        if self.meeting is not None:
            self.meeting.wait(30)
        with self._lock:
            self._now -= 1
            self._fail(number)
            assert (start, end) == bounds(SIZE)[number]
            assert renewals == self.renewals
            self.sent[number] += 1
        return f"tag {number}"

    def complete(self, link: Link, body: bytes) -> None:
        assert link.url == f"complete {self.renewals}"
        self._fail("complete")
        self.completed.append(body)

    def renew(self, upload_id: str) -> Parts | None:
        assert upload_id == "u"
        self._fail("renew")
        self.renewals += 1
        return self.parts()

    def _fail(self, name: object) -> None:
        if self.faults.get(name):
            raise self.faults[name].pop(0)


def run(store: Store) -> None:
    PartedUpload(store.parts(), SIZE, range(COUNT), store, lambda error: isinstance(error, Refused)).run()


WHOLE = completion([f"tag {number}" for number in range(COUNT)], range(COUNT))


def test_every_part_is_sent_once_and_then_all_are_combined() -> None:
    store = Store()
    run(store)
    assert store.sent == dict.fromkeys(range(COUNT), 1)
    assert (store.completed, store.renewals) == ([WHOLE], 0)


def test_several_parts_are_sent_at_the_same_time() -> None:
    store = Store()
    store.meeting = threading.Barrier(2)
    run(store)
    assert 2 <= store.most <= THREADS


@pytest.mark.parametrize("fault", [0, COUNT - 1, "complete"])
def test_a_part_whose_link_has_expired_is_sent_by_a_new_link(fault: object) -> None:
    store = Store()
    store.faults[fault] = [Refused()]
    run(store)
    assert store.sent == dict.fromkeys(range(COUNT), 1)
    assert (store.completed, store.renewals) == ([WHOLE], 1)


def test_links_may_expire_repeatedly_while_parts_arrive() -> None:
    """This holds as long as more parts arrive each time."""
    store = Store()
    for fault in (0, 3, 6, 9, "complete"):
        store.faults[fault] = [Refused()]
    run(store)
    assert store.sent == dict.fromkeys(range(COUNT), 1)
    assert store.completed == [WHOLE]


@pytest.mark.parametrize("fault", [3, "complete"])
def test_an_upload_fails_when_a_new_link_is_refused(fault: object) -> None:
    store = Store()
    store.faults[fault] = [Refused(), Refused(), Refused(), Refused()]
    with pytest.raises(Refused):
        run(store)
    assert not store.completed
    assert store.renewals <= 2


@pytest.mark.parametrize("fault", [0, 5, "complete", "renew"])
def test_an_upload_fails_at_any_other_error(fault: object) -> None:
    store = Store()
    store.faults = {4: [Refused()], fault: [ConnectionError()]}
    with pytest.raises(ConnectionError):
        run(store)
    assert not store.completed


def test_an_upload_ends_when_it_is_no_longer_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.faults[0] = [Refused()]
    monkeypatch.setattr(store, "renew", lambda _: None)
    with pytest.raises(Refused):
        run(store)


def test_an_interrupted_upload_is_not_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interrupt comes in the calling thread; the other threads stop after their part."""
    store, here, done = Store(), threading.current_thread(), threading.Event()

    def interrupted(link: Link, start: int, end: int) -> str:
        if threading.current_thread() is here:
            done.set()
            raise KeyboardInterrupt
        assert done.wait(30)
        return Store.put(store, link, start, end)

    monkeypatch.setattr(store, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(store)
    assert not store.completed


def test_an_upload_works_without_further_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter that shuts down starts no threads."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    store = Store()
    run(store)
    assert (store.most, store.completed) == (1, [WHOLE])


@given(st.integers(1, 2**40))
def test_the_parts_cover_the_whole_payload(size: int) -> None:
    size = size % (100 * PART_BYTES) + 1
    cut = bounds(size)
    assert [start for start, _ in cut] == [0, *(end for _, end in cut[:-1])]
    assert (cut[-1][1], len(cut)) == (size, -(-size // PART_BYTES))
    assert all(end - start == PART_BYTES for start, end in cut[:-1])


def test_a_payload_in_one_piece_has_only_one_checksum() -> None:
    body = bytes(WHOLE_BYTES)
    assert checksums(len(body), lambda start, end: body[start:end]) == (zlib.crc32(body), [])
    assert checksums(0, lambda start, end: b""[start:end]) == (0, [])


def test_a_payload_in_parts_has_a_checksum_for_each() -> None:
    body = bytes(range(256)) * (WHOLE_BYTES // 256) + b"more"
    whole, parts = checksums(len(body), lambda start, end: body[start:end])
    assert whole == zlib.crc32(body)
    assert parts == [zlib.crc32(body[start:end]) for start, end in bounds(len(body))]


def test_the_list_of_parts_has_s3s_form() -> None:
    assert completion(['"a<b&c"'], [zlib.crc32(b"abc")]) == (
        b'<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        b'<Part><PartNumber>1</PartNumber><ETag>"a&lt;b&amp;c"</ETag><ChecksumCRC32>NSRBwg==</ChecksumCRC32></Part>'
        b"</CompleteMultipartUpload>"
    )


@pytest.mark.parametrize(
    ("code", "status"),
    [("PreconditionFailed", 412), ("ConditionalRequestConflict", 409), ("InternalError", 500), ("BadDigest", 400)],
)
def test_an_error_may_come_with_status_200(code: str, status: int) -> None:
    body = f'\n\n<?xml version="1.0"?>\n<Error>\n  <Code>{code}</Code><Message>m</Message></Error>'.encode()
    assert completion_status(200, body) == status
    assert completion_status(403, body) == 403
