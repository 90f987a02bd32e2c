"""Uploads in parts: which parts are sent how many times after faults."""

import threading
from collections import Counter
from collections.abc import Sequence

import pytest

from cloudpar_protocol.limits import PART_BYTES
from cloudpar_protocol.parts import bounds, completion
from cloudpar_protocol.payloads import Link, Parts
from cloudpar_protocol.transport.parted_upload import THREADS, PartedUpload

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

    def put(self, link: Link, body: Sequence[memoryview]) -> str:
        number, renewals = map(int, link.url.split())
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        if self.meeting is not None:
            self.meeting.wait(30)
        with self._lock:
            self._now -= 1
            self._fail(number)
            assert b"".join(body) == place(*bounds(SIZE)[number])
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


def place(start: int, end: int) -> memoryview:
    """Stands for bytes [start, end)."""
    return memoryview(f"{start} {end}".encode())


def run(store: Store) -> None:
    PartedUpload(
        store.put, store.complete, SIZE, place, range(COUNT), store.renew, lambda error: isinstance(error, Refused)
    ).run(store.parts())


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

    def interrupted(link: Link, body: Sequence[memoryview]) -> str:
        if threading.current_thread() is here:
            done.set()
            raise KeyboardInterrupt
        assert done.wait(30)
        return Store.put(store, link, body)

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
