"""Instances of the real master. At each port call others may go on, and the instance may die."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloudpar_master.ports import Opened
from cloudpar_master.services.dispatcher import Dispatcher
from cloudpar_master.services.steps import finish
from cloudpar_master.services.timer import Timer
from cloudpar_protocol import codec
from cloudpar_protocol.errors import RateLimited, RequestError, Unavailable
from cloudpar_protocol.routes import Route
from master.crash.crashing import Crash
from support.backends import backend_on
from support.memory.stores import over

if TYPE_CHECKING:
    from .system import System

CALL_US = 8_000
PURE = {"get_link", "put_link"}
"""These calls only compute: they have no effect outside of the process."""
PASSING = (Unavailable, RateLimited)
"""The errors that the timer may meet, since the next tick tries again. Every other error is a bug."""


class SkewedClock:
    """A master's clock, which differs from the true time."""

    def __init__(self, now: Callable[[], float], ahead_s: float) -> None:
        self._now = now
        self.ahead_s = ahead_s

    def now(self) -> float:
        return self._now() + self.ahead_s

    def date(self, at: float) -> float:
        return at


class Port:
    """A port as a master uses it: time passes before each call."""

    def __init__(self, system: "System", master: "Master", name: str, port: Any) -> None:
        self._system = system
        self._master = master
        self._name = name
        self._port = port
        self._life = master.life

    def __getattr__(self, method: str) -> Any:
        function = getattr(self._port, method)
        if method in PURE:
            return function

        def call(*arguments: Any, **named: Any) -> Any:
            self._master.pass_time(self._life)
            refusal = self._system.chance(self._system.fate.refused) and self._system.random.choice(["before", "after"])
            if refusal == "before":
                raise Unavailable(f"{self._name} is busy")
            answer = self._carry_out(method, partial(function, **named), arguments)
            if refusal == "after":
                raise Unavailable(f"{self._name} did not answer")
            return answer

        return call

    def _carry_out(self, method: str, function: Any, arguments: tuple[Any, ...]) -> Any:
        books, who = self._system.books, self._master.name
        if method == "open" and self._system.chance(0.5):  # the head is read first, as on AWS
            answer = self._open_slowly(*arguments)
        else:
            answer = function(*arguments)
        if isinstance(answer, Iterator):
            answer = sorted(answer)  # a folder's entries have no order
        if self._name == "queue":
            answer = self._mishandle(method, arguments, answer)
        books.note(f"{who} {self._name}.{method}", arguments, answer)
        return answer

    def _open_slowly(self, package_id: str, limit: int) -> Opened | None:
        head = self._port.load(package_id)
        self._master.pass_time(self._life)
        opened = self._port.open(package_id, limit)
        return Opened(head, opened.inbox, opened.more) if head and opened else None

    def _mishandle(self, method: str, arguments: tuple[Any, ...], answer: Any) -> Any:
        """Do what a queue that delivers at least once may do."""
        system, fate = self._system, self._system.fate
        if method == "receive":
            again = [message.receipt for message in answer if system.chance(fate.redelivered)]
            if again:
                self._port.extend(again, 0.0)
        elif method == "send":
            return [sent and not system.chance(fate.unsent) for sent in answer]
        return answer


class LeakyQueue:
    """A queue that does not delete all messages."""

    def __init__(self, system: "System", queue: Any) -> None:
        self._system = system
        self._queue = queue

    def delete(self, receipts: Any) -> None:
        left = [receipt for receipt in receipts if not self._system.chance(self._system.fate.undeleted)]
        self._queue.delete(left)

    def __getattr__(self, method: str) -> Any:
        return getattr(self._queue, method)


class Master:
    """One instance of a master, which may die and start again.

    Attributes:
        life: The number of its current life. What an earlier life was about to do is not done.
    """

    def __init__(self, system: "System", name: str, folder: Path) -> None:
        self.name = name
        self.life = 0
        self.up = True
        self._system = system
        self._folder = folder
        fate = system.fate
        self.clock = SkewedClock(system.schedule.now, system.random.uniform(-fate.skew_s, fate.skew_s))
        self._start()
        system.schedule.spawn(self._watch, system.random.randrange(5_000_000))

    def _start(self) -> None:
        system = self._system
        # The queue has a clock of its own, as SQS has.
        stores = over(system.data, self._folder, system.schedule, system.ids)
        queue: Any = LeakyQueue(system, stores.queue)
        ports: dict[str, Any] = {
            name: Port(system, self, name, port)
            for name, port in (
                ("packages", stores.packages), ("accounts", stores.accounts), ("queue", queue), ("blobs", stores.blobs),
                ("registry", stores.registry),
            )
        }  # fmt: skip
        backend = backend_on(stores._replace(**ports), self.clock, system.policy)
        self._dispatcher = Dispatcher(backend)
        self._timer = Timer(backend)

    def pass_time(self, life: int) -> None:
        """Let others go on between two port calls. The master may die meanwhile.

        Raises:
            Crash: This life of the master has ended.
        """
        system, fate = self._system, self._system.fate
        if system.chance(fate.dies):
            self.die()
        stalls = system.chance(fate.stalls)
        system.schedule.sleep(system.random.randrange(20_000_000) if stalls else system.schedule.about(CALL_US))
        if self.life != life:
            raise Crash(self.name)

    def die(self) -> None:
        """Let the process die, with all that it was about to do. Another one takes its place later."""
        if self.up:
            self._system.books.say(f"{self.name} dies")
            self.up = False
            self.life += 1
            self._system.schedule.after(self._system.random.randrange(3_000_000), self._rise)

    def _rise(self) -> None:
        self._system.books.say(f"{self.name} starts again")
        self.up = True
        self._start()

    def perform(self, token: str, route: Route[Any, Any], body: bytes) -> bytes | RequestError | None:
        """Perform a request over the wire, and return the answer; None: the master died."""
        life = self.life
        try:
            call = self._dispatcher.admit(route.name, token, body, codec.MSGPACK)
            answer = codec.encode(self._dispatcher.perform(call))
            self.pass_time(life)
        except Crash:
            return None
        except RequestError as error:
            return error
        return answer

    def _watch(self) -> None:
        """Tick."""
        while True:
            if self.up:
                try:
                    finish(self._timer.tick())
                except Crash:
                    pass
                except PASSING as error:
                    self._system.books.say(f"{self.name} timer: {error}")
                except ExceptionGroup as group:
                    _, others = group.split(PASSING)
                    if others:  # a failed check is raised alone, as everywhere else
                        raise next(iter(others.exceptions)) from None
            self._system.schedule.sleep(self._system.tick_us)
