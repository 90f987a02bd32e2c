from collections.abc import Collection, Sequence

from msgspec import Struct

from cloudpar_master.core.turns import Line, Turns
from cloudpar_master.ports import LARGEST_RECEIVES, Clock, Fit, Ids, Message, Needs, Sending
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay
from support.memory.packages import ALONE

MEMORY_S = 300.0


class Letter(Struct):
    """A message. It waits since `at`, is hidden until `at`, or is dead."""

    body: str
    at: float
    account: str
    package: str
    first: bool
    cost_us: int
    python: str
    state: str = "waiting"
    receives: int = 0
    receipt: str = ""
    group: str = ""

    @property
    def needs(self) -> Needs:
        return Needs(self.account, self.package, self.python)


class Letters:
    """The stored messages of a queue.

    Attributes:
        looks: Whether the queue looks into messages, and brings only what fits a worker.
        withdraws: Whether it removes messages of ended packages. Only the queue of a master with one process does so: a
            slow process could remove the messages of a later package with the same id.
    """

    def __init__(self) -> None:
        self.looks = self.withdraws = True
        self.there: list[Letter] = []
        self.sent_until: dict[str, float] = {}
        self.attempts: dict[str, tuple[float, list[str]]] = {}


class MemoryTaskQueue:
    """The queue as a list, in the order of sending; packages take turns."""

    def __init__(self, letters: Letters, clock: Clock, ids: Ids) -> None:
        self._letters = letters
        self._clock = clock
        self._ids = ids
        self._turns = Turns()

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        with ALONE:
            now = self._clock.now()
            until = self._letters.sent_until
            for message in messages:
                there = any(letter.group == message.group for letter in self._letters.there)
                if until.get(message.group, now) <= now and not there:
                    until[message.group] = now + MEMORY_S
                    self._letters.there.append(Letter(message.body, now, *message[2:7], group=message.group))
            return [True] * len(messages)

    def receive(
        self,
        limit: int,
        visibility_s: float,
        attempt_id: str,
        besides: Collection[str] = (),
        fit: Fit = ANY,
        *,
        stay: Stay = NO_STAY,
        again: bool = False,
        express: bool = True,
        sent: bool = False,
    ) -> list[Message]:
        del again, express, sent
        with ALONE:
            now = self._clock.now()
            self._surface(now)
            before = self._repeat(attempt_id, now)
            if before:
                self.extend([message.receipt for message in before], visibility_s)
                return before
            messages: list[Message] = []
            while len(messages) < limit and (lines := self._lines(besides, fit if self._letters.looks else ANY)):
                letter = self._letters.there[self._turns.take(lines, stay.of(len(messages)), now).number]
                wait_us = max(0, round((now - letter.at) * 1e6))
                letter.state, letter.at, letter.receipt = "hidden", now + visibility_s, self._ids.fresh()
                letter.receives += 1
                messages.append(Message(letter.body, letter.receipt, letter.receives, wait_us))
            self._letters.attempts[attempt_id] = now + MEMORY_S, [message.receipt for message in messages]
            return messages

    def passed_over(self, fit: Fit) -> list[str]:
        with ALONE:
            waiting = [letter for letter in self._letters.there if letter.state == "waiting"]
            left = (letter.package for letter in waiting if not fit.takes(letter.needs))
            return list(dict.fromkeys(left)) if self._letters.looks else []

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        with ALONE:
            self._surface(self._clock.now())
            if not (self._letters.looks and self._letters.withdraws):
                return []
            line = "waiting", account_id, package_id
            gone = [each for each in self._letters.there if (each.state, each.account, each.package) == line]
            self._letters.there = [letter for letter in self._letters.there if letter not in gone]
            return [letter.body for letter in gone if not letter.receives]

    def _lines(self, besides: Collection[str], fit: Fit) -> list[Line]:
        oldest: dict[tuple[str, str], Line] = {}
        for number, letter in enumerate(self._letters.there):
            fits = letter.package not in besides and fit.takes(letter.needs)
            if letter.state == "waiting" and fits:
                line = Line(number, letter.account, letter.package, letter.first, letter.cost_us)
                oldest.setdefault((letter.account, letter.package), line)
        return list(oldest.values())

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        with ALONE:
            self._surface(self._clock.now())
            return bool(self._lines(besides, fit))

    def _repeat(self, attempt_id: str, now: float) -> list[Message]:
        until, receipts = self._letters.attempts.get(attempt_id, (0.0, []))
        return [
            Message(letter.body, letter.receipt, letter.receives, 0)
            for letter in self._letters.there
            if until > now and letter.state == "hidden" and letter.receipt in receipts
        ]

    def delete_unused(self, receipts: Sequence[str]) -> None:
        with ALONE:
            for number, letter in enumerate(self._letters.there):
                if letter.receipt in receipts:
                    self._turns.give_back(Line(number, letter.account, letter.package, letter.first, letter.cost_us))
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        with ALONE:
            self._letters.there = [letter for letter in self._letters.there if letter.receipt not in receipts]

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        with ALONE:
            for letter in self._letters.there:
                if letter.receipt in receipts:
                    letter.state, letter.at = "hidden", self._clock.now() + visibility_s

    def waiting(self) -> int:
        with ALONE:
            self._surface(self._clock.now())
            return sum(letter.state == "waiting" for letter in self._letters.there)

    def express_waits(self) -> bool:
        return False

    def dead(self, limit: int) -> list[Message]:
        with ALONE:
            self._surface(self._clock.now())
            dead = [letter for letter in self._letters.there if letter.state == "dead"]
            return [Message(letter.body, letter.receipt, letter.receives, 0) for letter in dead[:limit]]

    def _surface(self, now: float) -> None:
        for letter in self._letters.there:
            if letter.state == "hidden" and letter.at <= now:
                letter.state = "waiting" if letter.receives < LARGEST_RECEIVES else "dead"
