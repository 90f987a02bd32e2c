"""The same request to every side: their answers are alike, and their records are what the reference says."""

from itertools import count
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant
from msgspec import Struct

from cloudpar_master.core.head import Head
from cloudpar_protocol import routes
from cloudpar_protocol.routes import Route
from support.clock import SetClock

from .reference import Package, Reference
from .sides import ACCOUNTS, PLENTY_US, Side, alike

which = st.integers(0, 30)
"""A number that chooses one of several things, modulo how many there are."""


class Asking(RuleBasedStateMachine):
    """Sends requests to all sides, and compares them.

    Attributes:
        open_sides: Makes the sides of a run.
        every: After how many requests the sides' records are compared. Their answers are always compared.
        order: The packages, in the order of their starts.
    """

    open_sides: ClassVar[Any]
    clock: ClassVar[SetClock]
    every: ClassVar[int] = 1

    def __init__(self) -> None:
        super().__init__()
        self.sides: list[Side] = self.open_sides()
        self.reference = Reference()
        self.names = count()
        self.order: list[str] = []
        self.revoked: set[str] = set()
        self.looks = 0

    def ask(self, token: str, route: Route[Any, Any], request: Struct) -> Any:
        return self.ask_each(token, route, [request] * len(self.sides))

    def ask_each(self, token: str, route: Route[Any, Any], asked: list[Any]) -> Any:
        """Send each side its own form of a request, with its own receipts. Returns the first side's answer."""
        answers = [side.ask(token, route, request) for side, request in zip(self.sides, asked, strict=True)]
        first = alike(answers[0])
        for answer in answers[1:]:
            assert alike(answer) == first
        if route is routes.RETRIEVE_TASKS:
            for side, answer in zip(self.sides, answers, strict=True):
                side.leases += answer.leases
        self.look()
        return answers[0]

    def looked_at(self) -> list[Side]:
        """Return the sides to look at: always the first, and the others only after `every` requests: it takes time."""
        self.looks += 1
        return self.sides if self.looks % self.every == 0 else self.sides[:1]

    def heads(self) -> list[Head]:
        """Return every package as it is now, equal on all sides."""
        sides = self.looked_at()
        heads = [[side.stores.packages.load(package_id) for package_id in self.order] for side in sides]
        for others in heads[1:]:
            assert others == heads[0]
        return [head for head in heads[0] if head is not None]

    def look(self) -> None:
        """Compare the packages with the reference."""
        for head in self.heads():
            package = self.reference.packages[head.package_id]
            cancelled = {index for start, end in head.tasks.cancelled for index in range(start, end)}
            assert cancelled >= package.cancelled
            package.cancelled = cancelled
            if head.life.ended and not package.ended:
                self.ended(package, head)
            if not package.ended or package.ended == "completed":
                assert head.tasks.done == len(package.committed) + len(cancelled)
                assert head.quota.used_us >= package.used_us
            if head.life.settled:
                said_us = sum(us for index, us in package.said_us.items() if index not in package.committed)
                assert head.quota.charged_us <= head.quota.used_us <= package.used_us + said_us

    def ended(self, package: Package, head: Head) -> None:
        package.ended = head.life.reason or head.life.state
        if package.ended == "completed":
            assert package.done
        elif package.ended == "quota":
            assert ACCOUNTS[package.account] < PLENTY_US
        else:
            assert package.ended in {"cancelled", "acknowledged", "revoked", "expired"}

    @invariant()
    def the_books_balance(self) -> None:
        records = [[side.stores.accounts.get(name) for name in ACCOUNTS] for side in self.looked_at()]
        assert all(others == records[0] for others in records[1:])
        heads = self.heads()
        for account in records[0]:
            assert account is not None
            assert account.spent_us + account.reserved_us <= account.granted_us
            theirs = [head for head in heads if head.account_id == account.account_id]
            if len(theirs) == sum(each.account == account.account_id for each in self.reference.packages.values()):
                assert account.spent_us == sum(head.quota.charged_us for head in theirs if head.life.settled)
            if account.granted_us >= PLENTY_US // 2:
                for head in theirs:
                    assert not head.life.settled or head.quota.charged_us == head.quota.used_us
