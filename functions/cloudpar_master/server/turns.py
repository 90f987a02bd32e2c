"""Whose request the master's one thread serves next."""

import asyncio
from collections import OrderedDict, deque


class Turns:
    """Serves callers in turn, and the requests of one caller in the order in which they came.

    Without it, requests are served as they come: a caller with many connections would make all others wait until all of
    its own requests are done.
    """

    def __init__(self) -> None:
        self._waiting = OrderedDict[str, deque[asyncio.Future[None]]]()
        self._choosing = False

    async def wait(self, caller: str) -> None:
        """Wait for the turn of a request. The caller then serves it without further waiting."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._choose_soon()
        await turn

    def _choose_soon(self) -> None:
        # One request in each turn of the event loop: so requests that come meanwhile are read before the next choice.
        if self._waiting and not self._choosing:
            self._choosing = True
            asyncio.get_running_loop().call_soon(self._choose)

    def _choose(self) -> None:
        self._choosing = False
        while self._waiting:
            caller, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns  # behind all other callers
            if not turn.done():  # otherwise the client has hung up
                turn.set_result(None)
                break
        self._choose_soon()
