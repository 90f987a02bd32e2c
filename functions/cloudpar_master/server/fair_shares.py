"""Chooses the request that the master's one thread serves next: a new one, or a held one that was woken."""

import asyncio
import time
from collections import OrderedDict, defaultdict, deque
from typing import Final

from cloudpar_master.core.virtual_time import VirtualTime

LEAST_US: Final = 100
"""Each turn is charged this many microseconds in addition to the measured time. Parts of transfers are not measured:
without LEAST_US they would cost nothing, and their accounts would not take turns."""


STRANGERS: Final = "strangers"
"""The role of requests without a valid token or link, such as challenges and requests for unknown paths."""

PREFERRED: Final = {"user", "worker", "admin"}
"""The roles whose calls may be served before their turn."""


class Serving:
    """Charges an account for the time of a `with` block."""

    __slots__ = ("_account", "_began_ns", "_used")

    def __init__(self, used: VirtualTime, account: str) -> None:
        self._used, self._account = used, account

    def __enter__(self) -> None:
        self._began_ns = time.perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self._used.charge(self._account, (time.perf_counter_ns() - self._began_ns) // 1000)


class FairShares:
    """Serves the roles in turn. Of a role, it serves the account that has used the least of the thread's time.

    A call whose account has used less than each waiting account of its role is served at once (`_prefers`). The other
    requests of one account are served in the order of arrival. Without turns, requests would be served as they come: a
    user with many connections would make all others wait until all of the user's own requests are done. It is not
    enough to count requests: an answer with thousands of results takes a hundred times as long as a small one.

    Roles come first because all workers together count as one account. If workers took turns with each account, many
    busy accounts would delay the workers' beats until leases end.

    Each part of an upload or download waits like a request, under a role for transfers of users or one for those of
    workers. A refusal waits, too: under the role STRANGERS if the sender has no valid token, and otherwise under the
    sender's own role and account. Without that, a client that is refused could send its next requests so fast that all
    others wait.
    """

    def __init__(self) -> None:
        self._waiting = OrderedDict[str, dict[str, deque[asyncio.Future[None]]]]()  # by role and account
        self._accounts = defaultdict[str, VirtualTime](VirtualTime)  # by role
        self._choosing = self._preferred = False

    async def wait(self, role: str, account: str = "", *, goes_on: bool = False) -> None:
        """Wait until a request may be served. The caller then serves it without an `await`.

        `goes_on` says that a part of this request has been served already. Such a request always waits for its turn.
        Otherwise a long request of an account that has used little would be served in every second turn.
        """
        if not goes_on and self._prefers(role, account):
            self._preferred = True
            asyncio.get_running_loop().call_soon(self._end_turn)
            # Without this line, an account that has been alone for a long time would have used far more than a
            # newcomer, and would wait until the newcomer has used as much.
            self._accounts[role].advance([account])
            self._accounts[role].charge(account, LEAST_US)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(role, {}).setdefault(account, deque()).append(turn)
        self._choose_soon()
        await turn

    def serving(self, role: str, account: str = "") -> "Serving":
        """Charge the account for the time that the `with` block takes, in which no other request is served."""
        return Serving(self._accounts[role], account)

    def _prefers(self, role: str, account: str) -> bool:
        """Whether a call, new or woken, is served at once, because each waiting account of its role has used more.

        A call and its answer take several turns of the event loop, and a map takes several calls. If each of them
        waited for a request of every other role, a busy master would be slow for all. At most one call is preferred in
        each turn of the loop. Otherwise the requests of one caller would keep the loop from reading those of others.
        """
        if self._preferred or role not in PREFERRED:
            return False
        used = self._accounts[role]
        return all(used.start_us(account) < used.start_us(other) for other in self._waiting.get(role, ()))

    def _end_turn(self) -> None:
        self._preferred = False

    def _choose_soon(self) -> None:
        # Choose only one request in each turn of the event loop, so that requests that come meanwhile are read before
        # the next choice.
        if self._waiting and not self._choosing:
            self._choosing = True
            asyncio.get_running_loop().call_soon(self._choose)

    def _choose(self) -> None:
        self._choosing = False
        while self._waiting:
            role, accounts = self._waiting.popitem(last=False)
            account = self._accounts[role].next(accounts)
            turn = accounts[account].popleft()
            if not accounts[account]:
                del accounts[account]
            if accounts:
                self._waiting[role] = accounts  # behind all other roles
            if not turn.done():  # otherwise the client has hung up
                self._accounts[role].charge(account, LEAST_US)
                turn.set_result(None)
                break
        self._choose_soon()
