from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Protocol

LARGEST_RECEIVES: Final = 4
"""A message that was delivered this many times and surfaces again is dead (SQS: maxReceiveCount)."""


class Sending(NamedTuple):
    """A message to send.

    Attributes:
        group: Its group and its deduplication id: within 5 minutes the queue drops further messages of the same group.
        account, package: Whose chunk it is. Accounts take turns, and so do the packages of an account.
        first: It is the first chunk of its package.
        cost_us: How long the chunk is likely to keep an executor busy.
        python: The version of Python that it needs; "" if any version will do.
        express: It starts with one of the first tasks of its package. A queue that cannot choose keeps such messages
            apart, so that they do not wait behind others.
    """

    group: str
    body: str
    account: str = ""
    package: str = ""
    first: bool = False
    cost_us: int = 1
    python: str = ""
    express: bool = False


Needs = tuple[str, str]
"""A package id and a version of Python. The message needs a worker that has this version and that is not set aside for
this package."""


class Fit(NamedTuple):
    """Which messages a worker can take: those for one of `pythons` (empty: any), and no package in `set_aside`."""

    pythons: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()

    def takes(self, package_id: str, python: str) -> bool:
        """Whether the worker can run the chunks of such a package."""
        return self.has(python) and package_id not in self.set_aside

    def has(self, python: str) -> bool:
        """Whether the worker has this version of Python, as far as it reported ("": any version does)."""
        return not python or not self.pythons or python in self.pythons


ANY: Final = Fit()
"""Every message."""


class Message(NamedTuple):
    """A received message. The queue does not deliver it again before its visibility timeout ends.

    `wait_us` is how long it lay in the queue before this delivery, `receives` counts the deliveries.
    """

    body: str
    receipt: str
    receives: int
    wait_us: int


class StaleAttempt(Exception):
    """The queue cannot repeat an attempt, since its messages have changed. A call with another id is a new attempt."""


class TaskQueue(Protocol):
    """A queue that delivers each message at least once. Messages are hints, and their groups are independent.

    As far as a queue can choose, it delivers the messages of one package in the order of their sending, accounts and
    packages take turns (core.turns), and the first chunks of packages come before all others.
    """

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """Enqueue durably. Returns one answer for each message; False means that it has to be sent again."""
        ...

    def receive(
        self,
        limit: int,
        visibility_s: float,
        attempt_id: str,
        besides: Collection[str] = (),
        fit: Fit = ANY,
        *,
        again: bool = False,
        express: bool = True,
    ) -> list[Message]:
        """Take up to `limit` messages, none of a package in `besides` unless the queue cannot choose.

        A queue that can look into messages brings only those that fit; one that cannot brings any, and the caller puts
        back what does not fit. A call with the same attempt id within 5 minutes brings the same messages, and
        hides them for `visibility_s` again. `again` says that the id was used before: a queue that consists of several
        queues may then bring up to `limit` messages of each. Without `express`, a queue that keeps `express` messages
        apart brings none of them.

        Raises:
            StaleAttempt: The id was used before, and the queue cannot say what it brought.
        """
        ...

    def passed_over(self, fit: Fit) -> list[str]:
        """Return the packages whose waiting messages do not fit. Empty if this queue cannot look into messages."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Remove messages; a receipt that is no longer valid is ignored."""
        ...

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """Remove messages of which a worker ran no task. They do not count when the queue decides whose turn it is."""
        ...

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """Keep messages invisible for this long from now; a receipt that is no longer valid is ignored."""
        ...

    def waiting(self) -> int:
        """Return about how many messages could be received now. A queue may stop counting at a large number."""
        ...

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """Whether a message that fits, of a package that is not in `besides`, could be received now."""
        ...

    def express_waits(self) -> bool:
        """Whether a busy worker should fetch a first chunk (`express`) as soon as one of its executors is free.

        Always False if the queue can choose: its busy workers peek instead.
        """
        ...

    def dead(self, limit: int) -> list[Message]:
        """Return messages that were delivered too often. They stay until they are deleted."""
        ...
