import asyncio
from collections import defaultdict, deque


class Bell:
    """Wakes held requests: the adapters ring it, on the server's own thread."""

    def __init__(self) -> None:
        self._retrievals: deque[asyncio.Future[None]] = deque()
        self._awaits: dict[str, set[asyncio.Future[None]]] = defaultdict(set)

    def head_saved(self, package_id: str) -> None:
        """A package has news: every await that names it looks."""
        for waiter in self._awaits.pop(package_id, ()):
            _wake(waiter)

    def chunks_sent(self, count: int) -> None:
        """The queue has more: as many retrievals look, in the order in which they came."""
        while count and self._retrievals:
            count -= _wake(self._retrievals.popleft())

    def session_started(self, session: str) -> None:
        """A session has a new package: its await looks."""
        self.head_saved(_session(session))

    def everybody(self) -> None:
        """The server ends: whoever is held looks."""
        self.chunks_sent(len(self._retrievals))
        for name in list(self._awaits):
            self.head_saved(name)

    async def chunks(self, timeout_s: float) -> None:
        """Wait until the queue may have something. Cancelled, it passes on what it was woken for."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._retrievals.append(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout_s)
        except asyncio.CancelledError:
            if waiter.done():
                self.chunks_sent(1)
            raise
        finally:
            if waiter in self._retrievals:
                self._retrievals.remove(waiter)

    async def news(self, package_ids: list[str], session: str, timeout_s: float) -> None:
        """Wait until one of the packages, or the session, may have something."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        names = [*package_ids, _session(session)]
        for name in names:
            self._awaits[name].add(waiter)
        try:
            await asyncio.wait([waiter], timeout=timeout_s)
        finally:
            for name in names:
                self._awaits[name].discard(waiter)
                if not self._awaits[name]:
                    del self._awaits[name]


def _session(session: str) -> str:
    return f"session {session}"


def _wake(waiter: asyncio.Future[None]) -> int:
    if waiter.done():
        return 0
    waiter.set_result(None)
    return 1
