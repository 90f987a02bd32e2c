"""Whose request the master's one thread serves next: a new one, or a held one that was woken."""

import asyncio
from collections import OrderedDict, deque


class Turns:
    """Serves roles in turn, the accounts of a role in turn, and the requests of one account in the order of arrival.

    Without it, requests are served as they come: a user with many connections would make all others wait until all of
    the user's own requests are done.

    Roles come first because all workers together count as one account. If they took turns with each account, many busy
    accounts would delay the workers' beats until leases end.

    Each part of an upload or download takes a turn of its own, in a role of its own.
    """

    def __init__(self) -> None:
        self._waiting = OrderedDict[str, OrderedDict[str, deque[asyncio.Future[None]]]]()  # by role and account
        self._choosing = False

    async def wait(self, role: str, account: str = "") -> None:
        """Wait for the turn of a request. The caller then serves it without further waiting."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(role, OrderedDict()).setdefault(account, deque()).append(turn)
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
            role, accounts = self._waiting.popitem(last=False)
            account, turns = accounts.popitem(last=False)
            turn = turns.popleft()
            if turns:
                accounts[account] = turns  # behind all other accounts
            if accounts:
                self._waiting[role] = accounts  # behind all other roles
            if not turn.done():  # otherwise the client has hung up
                turn.set_result(None)
                break
        self._choose_soon()
