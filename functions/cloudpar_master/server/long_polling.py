"""Long polling: holds requests open until there is something to answer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from cloudpar_master.ports import Needs
from cloudpar_master.services.access import Caller
from cloudpar_master.services.dispatcher import Call, Dispatcher
from cloudpar_protocol.client_messages import AwaitTasks, AwaitTasksReply
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.worker_messages import RetrieveTasks, RetrieveTasksReply

from . import storage_state
from .fair_shares import STRANGERS, FairShares, Serving
from .storage_state import StorageState
from .unseen_packages import UnseenPackages
from .wakeups import Wakeups

Receive = Callable[[], Awaitable[Any]]


class LongPolling:
    """Performs retrieve_tasks and await_tasks again after each wakeup, until they bring news or their time is over."""

    def __init__(self, dispatcher: Dispatcher, wakeups: Wakeups, storage: StorageState, shares: FairShares) -> None:
        self.dispatcher = dispatcher
        self._shares = shares
        self._storage = storage
        self._wakeups = wakeups
        self._unseen = UnseenPackages()
        self._ending = False

    async def turn(self, caller: Caller | None, *, goes_on: bool = False) -> None:
        """Wait until a request of this caller may be performed: a new request, or a held request that was woken.

        If `caller` is None, the request has no valid token, and may be refused after this. `goes_on` says that a step
        of the request has been performed already.
        """
        if caller is None:
            await self._shares.wait(STRANGERS)
        else:
            await self._shares.wait(caller.role, _account(caller), goes_on=goes_on)

    def serving(self, caller: Caller) -> Serving:
        """Charge this caller for the time that the `with` block takes."""
        return self._shares.serving(caller.role, _account(caller))

    def perform(self, call: Call) -> Struct:
        """Perform a call, and charge its caller for the time that the call takes."""
        with self.serving(call.caller):
            return self.dispatcher.perform(call)

    async def perform_in_steps(self, call: Call) -> Struct:
        """Perform a call, and let other requests have their turns between its steps."""
        steps = self.dispatcher.steps(call)
        while True:
            with self.serving(call.caller):
                try:
                    next(steps)
                except StopIteration as end:
                    reply: Struct = end.value
                    return reply
            await self.turn(call.caller, goes_on=True)

    def end(self) -> None:
        """Answer all held requests now, and hold no further ones, since the server ends."""
        self._ending = True
        self._wakeups.wake_all()

    async def retrieve(self, call: Call, gone: Callable[[], bool]) -> Struct:
        """Hold a retrieval until there is a chunk for it; hold a peek until a chunk of another package waits.

        Both end after `hold_s` at the latest, and when the server ends. A worker that has hung up gets no lease:
        otherwise the chunk would lie idle until the lease ends. Another held retrieval that can take the chunk is woken
        instead.
        """
        request: RetrieveTasks = call.request
        fit = self.dispatcher.fit(request)
        deadline = _now() + min(request.hold_s, HOLD_S)
        woken_for = None
        while not gone():
            reply = self.perform(call)
            assert isinstance(reply, RetrieveTasksReply)  # noqa: S101 - the route's reply type
            left_s = deadline - _now()
            if reply.leases or reply.waiting or left_s <= 0:
                return replace(reply, retry_after_s=0.0, holds=True)
            if self._ending:
                return reply
            if request.peek:
                await self._wakeups.wait_for_others(left_s, fit, request.besides)
            elif reply.retry_after_s:
                woken_for = await self._wakeups.wait_for_chunks(left_s, fit)
            # One run of the timer may wake many retrievals. Without turns, they would all be performed before any other
            # request. A retrieval that did not wait for a wakeup takes a turn, too: the queue had only stale chunks for
            # it, and good chunks may be behind them.
            try:
                await self.turn(call.caller)
            except asyncio.CancelledError:
                self._pass_on(woken_for)
                raise
        self._pass_on(woken_for)
        return RetrieveTasksReply()

    def _pass_on(self, woken_for: Needs | None) -> None:
        """Wake another held retrieval for the chunk for which this retrieval was woken.

        Otherwise the chunk would wait until the next run of the master's timer.
        """
        if woken_for is not None:
            self._wakeups.chunks_sent([woken_for])

    def started(self, call: Call, package_id: str) -> None:
        """Record a new package.

        If an await of the package's session is held and does not name the package, the await is answered at once. If
        none is held, the next such await is answered at once.
        """
        self._unseen.add(_account(call.caller), call.request.session, package_id)
        self._wakeups.session_started(_session(call))

    async def news(self, call: Call, gone: Callable[[], bool]) -> Struct:
        """Hold an await until one of its packages has news, for at most `hold_s`.

        The await also ends when its session has started a package that the await does not name, and when the server
        ends. It ends, too, when the master, or a worker that shares its folder, reports that it cannot write. While
        there is such a report, an await is held for at most `storage_state.HOLD_S`.
        """
        request: AwaitTasks = call.request
        unwritable = self._storage.unwritable is not None
        deadline = _now() + min(request.hold_s, storage_state.HOLD_S if unwritable else HOLD_S)
        names = [cursor.package_id for cursor in request.packages]
        session = _session(call)
        while True:
            reply = self.perform(call)
            assert isinstance(reply, AwaitTasksReply)  # noqa: S101 - the route's reply type
            left_s = deadline - _now()
            changed = unwritable is not (self._storage.unwritable is not None)
            unnamed = self._unseen.any_besides(_account(call.caller), request.session, names)
            if changed or unnamed or _has_news(request, reply) or left_s <= 0:
                return replace(reply, retry_after_s=0.0)
            if gone() or self._ending:
                return reply
            await self._wakeups.wait_for_news(names, session, left_s)
            # One publication may wake a thousand awaits of an account. Without turns, they would all be performed
            # before the next request of another account.
            await self.turn(call.caller)


def _account(caller: Caller) -> str:
    return caller.account.account_id if caller.account else ""


def _session(call: Call) -> str:
    """Return a unique name of a caller's session: the account id, and the name that the client has given the session.

    Clients of two accounts may give their sessions the same name.
    """
    return f"{call.user.account_id if call.user else ''} {call.request.session}"


def _now() -> float:
    """Return the time of the event loop. Wall time may jump while a request is held."""
    return asyncio.get_running_loop().time()


def _has_news(request: AwaitTasks, reply: AwaitTasksReply) -> bool:
    if reply.missing:
        return True
    cursors = {cursor.package_id: cursor.cursor for cursor in request.packages}
    return any(
        status.results or status.state != "running" or status.cursor != cursors[status.package_id]
        for status in reply.packages
    )


async def unless_gone(hold: Callable[[Callable[[], bool]], Awaitable[Struct]], receive: Receive) -> Struct | None:
    """Hold a request, and return its reply; None if the client hangs up first.

    `hold` is called with a function that returns whether the client has hung up. `hold` runs in the caller's asyncio
    task: if it had a task of its own, its reply would arrive two turns of the event loop later.
    """
    task, holds = asyncio.current_task(), True

    def give_up(_: object) -> None:
        if holds and task is not None:
            task.cancel()

    hung_up = asyncio.ensure_future(_hang_up(receive))
    hung_up.add_done_callback(give_up)
    try:
        await asyncio.sleep(0)  # the client may have hung up already
        return await hold(hung_up.done)
    except asyncio.CancelledError:
        if task is None or not hung_up.done() or task.uncancel():
            raise  # the server cancels the request
        return None
    finally:
        holds = False
        hung_up.cancel()


async def _hang_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
