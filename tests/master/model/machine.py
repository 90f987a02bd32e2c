"""All callers of the services, in any order: the answers are what the reference says, and the same on each side."""

from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant

from .clients import Clients
from .operator import Operator
from .sides import ACCOUNTS
from .workers import Workers


class Tally:
    """Counts what Hypothesis has run, which may be less than the test wants.

    Attributes:
        runs: How many runs had their full length and passed the checks at the end.
        steps: How many steps these had.
    """

    runs = 0
    steps = 0


class Services(Clients, Workers, Operator):
    """All callers together.

    Attributes:
        tally: Counts the runs that have come to their end.
        length: How many steps a run has.
    """

    tally: ClassVar[Tally]
    length: ClassVar[int]

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0

    @invariant()
    def a_step_is_done(self) -> None:
        """Count a step: Hypothesis checks invariants after each rule, also after the first one."""
        self.steps += 1

    @initialize(tasks=st.integers(1, 12), chunksize=st.sampled_from([None, 1, 4]))
    def start_packages(self, tasks: int, chunksize: int | None) -> None:
        """Start packages, so that there is something to do at once."""
        for account in sorted(ACCOUNTS):
            self.start(account, tasks, chunksize)
        self.retrieve("w1", 2)

    def teardown(self) -> None:
        """Bring every package to its end, and check the charges."""
        self.every = 1  # type: ignore[misc]
        for _ in range(60):
            for number in self.take("w1", f"attempt-{next(self.names)}", 10):
                self.publish(number, (0, 12), True, "ok", 500)
            self.pass_time(7.0)
            self.timer()
            if all(head.life.settled for head in self.heads()) and not self.sides[0].stores.queue.waiting():
                break
        for head in self.heads():
            package = self.reference.packages[head.package_id]
            assert head.life.ended, head
            assert head.life.settled, head
            assert package.ended != "completed" or head.quota.charged_us == head.quota.used_us >= package.used_us
        assert [side.stores.queue.waiting() for side in self.sides] == [0] * len(self.sides)
        self.the_books_balance()
        if self.steps >= self.length:
            self.tally.runs += 1
            self.tally.steps += self.steps
