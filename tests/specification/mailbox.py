"""A queue whose messages come, return and vanish as the steps of the specification say."""

from collections.abc import Collection, Sequence
from itertools import count

from msgspec import Struct

from cloudpar_master.ports import Fit, Message, Sending
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay


class Letter(Struct):
    """A message. `at` is "waiting", "leased" or "dead"."""

    body: str
    at: str = "waiting"
    receives: int = 0
    receipt: str = ""


class Mailbox:
    """The port TaskQueue. It drops no message that was sent before, as a queue may after 5 minutes.

    Attributes:
        chosen: The message that the next call of `receive` brings.
        keeps: Whether deletions fail: the master dies before it deletes a message.
    """

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.chosen: Letter | None = None
        self.keeps = False
        self._receipts = count()

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        self.letters += [Letter(message.body) for message in messages]
        return [True] * len(messages)

    def receive(
        self, limit: int, visibility_s: float, attempt_id: str, besides: Collection[str] = (), fit: Fit = ANY,
        *, stay: Stay = NO_STAY, again: bool = False, express: bool = True, sent: bool = False,
    ) -> list[Message]:  # fmt: skip
        del limit, visibility_s, attempt_id, besides, fit, stay, again, express, sent
        letter, self.chosen = self.chosen, None
        if letter is None:
            return []
        letter.at, letter.receives, letter.receipt = "leased", letter.receives + 1, f"receipt {next(self._receipts)}"
        return [self.message(letter)]

    def message(self, letter: Letter) -> Message:
        """Return a message as the queue hands it out."""
        return Message(letter.body, letter.receipt, letter.receives, 0)

    def end_lease(self, letter: Letter, deliveries: int) -> None:
        """Let a message be received again, or be dead. Its receipt is no longer valid."""
        letter.at, letter.receipt = "waiting" if letter.receives < deliveries else "dead", ""

    def delete(self, receipts: Sequence[str]) -> None:
        if not self.keeps:
            self.letters = [letter for letter in self.letters if not letter.receipt or letter.receipt not in receipts]

    def delete_unused(self, receipts: Sequence[str]) -> None:
        self.delete(receipts)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """Do nothing: leases end when a step says so."""

    def passed_over(self, fit: Fit) -> list[str]:
        del fit
        return []

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        """Remove nothing, as SQS: a step of the specification removes a message when a worker receives it."""
        del account_id, package_id
        return []

    def waiting(self) -> int:
        return sum(letter.at == "waiting" for letter in self.letters)

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        del besides, fit
        return self.waiting() > 0

    def express_waits(self) -> bool:
        return False

    def dead(self, limit: int) -> list[Message]:
        return [self.message(letter) for letter in self.letters if letter.at == "dead"][:limit]
