"""The network: delays, losses, duplicates and partitions. Callers repeat their requests, as the real ones do."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from greenlet import GreenletExit

from cloudpar_protocol import codec
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.routes import ReplyT, RequestT, Route

from .masters import Master
from .schedule import Box

if TYPE_CHECKING:
    from .system import System

TRAVEL_US = 5_000
PATIENCE_US = 6_000_000
AGAIN_US = 300_000


class Unanswered(Exception):
    """There was no answer, and the caller does not repeat the request."""


class Call(NamedTuple):
    """A request on its way, and the box for its answer."""

    caller: str
    token: str
    route: Route[Any, Any]
    body: bytes
    box: Box


class Network:
    """Carries requests to a master, and answers back."""

    def __init__(self, system: "System") -> None:
        self._system = system
        self._cut_until_us: dict[tuple[str, str], int] = {}
        self._silent: set[str] = set()

    def silence(self, caller: str) -> None:
        """Let a dead caller repeat nothing. What it has sent is still on its way."""
        self._silent.add(caller)

    def cut(self, caller: str, master: str, us: int) -> None:
        """Let no request and no answer pass between these two for some time."""
        self._cut_until_us[caller, master] = self._system.schedule.now_us + us

    def _is_cut(self, caller: str, master: str) -> bool:
        return self._cut_until_us.get((caller, master), 0) > self._system.schedule.now_us

    def ask(
        self, caller: str, token: str, route: Route[RequestT, ReplyT], request: RequestT, *, repeat: bool = True
    ) -> ReplyT:
        """Send a request, and repeat it with the same content until it is answered.

        Raises:
            RequestError: The master answers an error after which the caller should not try again.
            Unanswered: There is no answer, and the request should not be repeated.
        """
        body, schedule = codec.encode(request), self._system.schedule
        while True:
            if caller in self._silent:
                raise GreenletExit  # its task just ends
            box = Box()
            self._send(Call(caller, token, route, body, box))
            answer = schedule.wait(box, PATIENCE_US)
            if isinstance(answer, bytes):
                return codec.decode(answer, route.reply)
            if isinstance(answer, RequestError) and not answer.retryable:
                raise answer
            if not repeat:
                raise Unanswered
            schedule.sleep(schedule.about(AGAIN_US))

    def _send(self, call: Call) -> None:
        system, fate = self._system, self._system.fate
        if not system.chance(fate.lost):
            self._deliver(call, system.schedule.about(TRAVEL_US))
        if system.chance(fate.twice):
            self._deliver(call, system.random.randrange(20_000_000))

    def _deliver(self, call: Call, delay_us: int) -> None:
        master = self._system.random.choice(self._system.masters)
        self._system.schedule.spawn(partial(self._arrive, call, master), delay_us)

    def _arrive(self, call: Call, master: Master) -> None:
        system, (caller, token, route, body, box) = self._system, call
        if self._is_cut(caller, master.name) or not master.up:
            system.schedule.fill(box, None)  # refused at once
            return
        system.books.say(f"{caller} -> {master.name} {route.name}")
        system.books.asked(route, body)
        began_us = system.schedule.now_us
        answer = master.perform(token, route, body)
        system.books.answered(route, body, answer, began_us)
        if answer is None and system.chance(system.fate.together):
            system.vanish(caller)
        if answer is None or self._is_cut(caller, master.name) or system.chance(system.fate.lost):
            return  # the answer is lost, and the caller waits until its time is over
        system.schedule.sleep(system.schedule.about(TRAVEL_US))
        error = "" if isinstance(answer, bytes) else f": {answer!r}"
        system.books.say(f"{caller} <- {master.name} {route.name}{error}")
        system.schedule.fill(box, answer)
