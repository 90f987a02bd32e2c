import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from cloudpar_master.ports import Fit, Needs
from cloudpar_master.ports.task_queue import ANY

ANYTHING = Needs("", "", "")
"""Stands for the needs of a chunk if they are not known. Such a chunk wakes all peeks, and the retrieval that was held
longest."""


class _Retrieval(NamedTuple):
    waiter: asyncio.Future[Needs | None]
    fit: Fit

    def waits_for(self, need: Needs) -> bool:
        return not self.waiter.done() and (need == ANYTHING or self.fit.takes(need))


class _Peek(NamedTuple):
    waiter: asyncio.Future[None]
    fit: Fit
    besides: frozenset[str]

    def is_for(self, need: Needs) -> bool:
        return need == ANYTHING or (need.package not in self.besides and self.fit.takes(need))


class Wakeups:
    """Wakes held requests. Only the server's own thread may use it: asyncio's futures are not safe in other threads."""

    def __init__(self) -> None:
        self._retrievals: deque[_Retrieval] = deque()
        self._peeks: list[_Peek] = []
        self._awaits: dict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def head_saved(self, package_id: str) -> None:
        """Wake every await that names this package, since the package may have news."""
        for waiter in self._awaits.pop(package_id, ()):
            _wake(waiter)

    def chunks_sent(self, needs: Iterable[Needs]) -> None:
        """For each chunk, wake the held retrieval that can take the chunk and has been held for longest.

        Then wake each peek that waits for one of these chunks. A peek does not wait for chunks of the packages that it
        names in `besides`, and most chunks are of such packages.
        """
        heard: set[Needs] = set()
        unserved: set[Needs] = set()
        for need in needs:
            heard.add(need)
            if need in unserved:  # one call may pass hundreds of equal needs: search the retrievals only once for them
                continue
            found = next((each for each in self._retrievals if each.waits_for(need)), None)
            if found is None:
                unserved.add(need)
            else:
                self._retrievals.remove(found)
                found.waiter.set_result(need)
        for peek in self._peeks:
            if any(map(peek.is_for, heard)):
                _wake(peek.waiter)

    def session_started(self, session: str) -> None:
        """Wake the await of a session that has a new package."""
        self.head_saved(_session(session))

    def wake_all(self) -> None:
        """Wake every held request, since the server ends."""
        self.chunks_sent([ANYTHING] * (len(self._retrievals) + 1))
        self.wake_awaits()

    def wake_awaits(self) -> None:
        """Wake every held await, so that each client gets an answer at once.

        This is necessary when the server ends, and when a report comes that the master or a worker cannot write.
        """
        for name in list(self._awaits):
            self.head_saved(name)

    async def wait_for_chunks(self, timeout_s: float, fit: Fit = ANY) -> Needs | None:
        """Wait until the queue may have a chunk that a worker with this `fit` can run, but at most `timeout_s` seconds.

        Returns the needs of that chunk, or ANYTHING if they are not known; None after `timeout_s`.

        If this call is cancelled after its retrieval was woken, it wakes another retrieval. Otherwise the chunk would
        wait until the next run of the master's timer.
        """
        retrieval = _Retrieval(asyncio.get_running_loop().create_future(), fit)
        self._retrievals.append(retrieval)
        try:
            with _ending(retrieval.waiter, timeout_s):
                return await retrieval.waiter
        except asyncio.CancelledError:
            need = None if retrieval.waiter.cancelled() else retrieval.waiter.result()
            if need is not None:
                self.chunks_sent([need])
            raise
        finally:
            if retrieval in self._retrievals:
                self._retrievals.remove(retrieval)

    async def wait_for_others(self, timeout_s: float, fit: Fit, besides: Iterable[str]) -> None:
        """Wait at most `timeout_s` seconds until a chunk that fits is sent, of a package that is not in `besides`.

        A chunk fits if a worker with this `fit` can run it. When this call returns, another worker may already have
        taken the chunk.
        """
        peek = _Peek(asyncio.get_running_loop().create_future(), fit, frozenset(besides))
        self._peeks.append(peek)
        try:
            with _ending(peek.waiter, timeout_s):
                await peek.waiter
        finally:
            self._peeks.remove(peek)

    async def wait_for_news(self, package_ids: list[str], session: str, timeout_s: float) -> None:
        """Wait until a package may have news, or the session has a new package, but at most `timeout_s` seconds."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        names = [*package_ids, _session(session)]
        for name in names:
            self._awaits[name].add(waiter)
        try:
            with _ending(waiter, timeout_s):
                await waiter
        finally:
            for name in names:
                self._awaits[name].discard(waiter)
                if not self._awaits[name]:
                    del self._awaits[name]


def _session(session: str) -> str:
    return f"session {session}"


def _wake(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)


@contextmanager
def _ending(waiter: asyncio.Future[Any], timeout_s: float) -> Iterator[None]:
    """Wake a waiter after `timeout_s` seconds: one turn of the event loop earlier than `asyncio.wait` would."""
    end = asyncio.get_running_loop().call_later(timeout_s, _wake, waiter)
    try:
        yield
    finally:
        end.cancel()
