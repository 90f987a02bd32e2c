"""A model of SQS as the master sees it: two FIFO queues in memory."""

from collections import deque
from collections.abc import Collection, Sequence
from itertools import count

from msgspec import Struct

from cloudpar_master.ports import Clock, Fit, Message, Sending, TaskQueue
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay

MEMORY_S = 300.0


class _Letter(Struct, eq=False):
    body: str
    sent_at: float
    line: "deque[_Letter]"
    receives: int = 0
    receipt: str = ""
    hidden_until: float = 0.0


class ModelQueue(TaskQueue):
    """The queue of all processes of a master. It has no dead letters, because no worker of the model is lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._main: deque[_Letter] = deque()
        self._express: deque[_Letter] = deque()
        self._hidden: dict[str, _Letter] = {}
        self._groups: dict[str, float] = {}
        self._numbers = count()
        self._looked_at = 0.0

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port."""
        now = self._clock.now()
        for message in messages:
            if self._groups.get(message.group, 0.0) <= now:
                self._groups[message.group] = now + MEMORY_S
                line = self._express if message.express else self._main
                line.append(_Letter(message.body, now, line))
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
        """See the port. No attempt is repeated, as no answer of the model is lost."""
        del fit, stay, again, sent
        self._surface()
        now = self._clock.now()
        lines = [self._express] if express else []
        if not besides:
            lines.append(self._main)
        line = next((each for each in lines if each), None)
        messages: list[Message] = []
        while line and len(messages) < limit:
            letter = line.popleft()
            letter.receives += 1
            letter.receipt, letter.hidden_until = f"{attempt_id}#{next(self._numbers)}", now + visibility_s
            self._hidden[letter.receipt] = letter
            wait_us = round((now - letter.sent_at) * 1e6) if letter.receives == 1 else 0
            messages.append(Message(letter.body, letter.receipt, letter.receives, wait_us))
        return messages

    def _surface(self) -> None:
        now = self._clock.now()
        if now - self._looked_at < 1.0:
            return
        self._looked_at = now
        for letter in [each for each in self._hidden.values() if each.hidden_until <= now]:
            del self._hidden[letter.receipt]
            letter.line.append(letter)

    def passed_over(self, fit: Fit) -> list[str]:
        """See the port."""
        del fit
        return []

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        """See the port."""
        del account_id, package_id
        return []

    def delete(self, receipts: Sequence[str]) -> None:
        """See the port."""
        for receipt in receipts:
            self._hidden.pop(receipt, None)

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """See the port."""
        self.delete(receipts)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port."""
        for receipt in receipts:
            if receipt in self._hidden:
                self._hidden[receipt].hidden_until = self._clock.now() + visibility_s

    def waiting(self) -> int:
        """See the port."""
        return len(self._main) + len(self._express)

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """See the port."""
        del fit
        return bool(self._express) or (bool(self._main) and not besides)

    def express_waits(self) -> bool:
        """See the port."""
        return bool(self._express)

    def dead(self, limit: int) -> list[Message]:
        """See the port."""
        del limit
        return []
