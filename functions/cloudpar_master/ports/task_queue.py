from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, Protocol

LARGEST_RECEIVES: Final = 4
"""A message that was delivered this many times becomes a dead letter when its visibility timeout ends again (SQS:
maxReceiveCount)."""


class Sending(NamedTuple):
    """A message to send.

    Attributes:
        group: The message's group and deduplication id. Within 5 minutes the queue drops further messages of the same
            group. Later the queue may accept such messages, but it delivers none of them while an earlier message of
            the group is hidden.
        account, package: The owner and the package of the chunk. Accounts take turns, and so do the packages of an
            account.
        first: Whether the chunk starts with the first task of its package.
        cost_us: The likely time for which the chunk keeps an executor busy, in microseconds.
        python: The version of Python that the chunk needs; "" if any version will do.
        express: Whether the chunk overtakes the chunks of long packages (planning.express_until). A queue that cannot
            choose among messages keeps such messages apart, so that they do not wait behind all other messages.
    """

    group: str
    body: str
    account: str = ""
    package: str = ""
    first: bool = False
    cost_us: int = 1
    python: str = ""
    express: bool = False


class Needs(NamedTuple):
    """What a message needs of its worker.

    Attributes:
        account: The account that the worker must serve.
        package: The package for which the worker must not be set aside.
        python: The version of Python that the worker must have; "": any version will do.
    """

    account: str
    package: str
    python: str


class Fit(NamedTuple):
    """The messages that a worker can take.

    Attributes:
        pythons: The versions of Python that the worker has; empty: any version.
        set_aside: The packages for which the worker is set aside.
        account: The account whose tasks the worker runs; "": it runs tasks of all accounts.
        ended: Packages that have no tasks left to run. The worker can take all of their messages, because the master
            removes these messages and hands out no task.
        refuses: The accounts whose tasks the worker does not run: these tasks may not use the network, and the worker
            cannot keep tasks from the network.
    """

    pythons: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()
    account: str = ""
    ended: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()

    def takes(self, needs: Needs) -> bool:
        """Whether the worker can take messages with these needs."""
        runs = self.serves(needs.account) and self.has(needs.python) and needs.package not in self.set_aside
        return runs or needs.package in self.ended

    def serves(self, account_id: str) -> bool:
        """Whether the worker runs tasks of this account."""
        return self.account in ("", account_id) and account_id not in self.refuses

    def has(self, python: str) -> bool:
        """Whether the worker can run this version of Python. True for "" (any version), and if `pythons` is empty."""
        return not python or not self.pythons or python in self.pythons


ANY: Final = Fit()
"""Fits every message."""


class Stay(NamedTuple):
    """A worker may stay with its account (core.turns) for the first `messages` messages that one call receives."""

    worker_id: str = ""
    messages: int = 0

    def of(self, number: int) -> str:
        """Return the worker's id if the message with this number (from 0) is one of these; "" for a later message."""
        return self.worker_id if number < self.messages else ""


NO_STAY: Final = Stay()


class Message(NamedTuple):
    """A received message.

    Before the visibility timeout of a message ends, the queue delivers the message again only to a call that repeats
    the same attempt. `wait_us` is how long the message waited for this delivery, or 0 if the queue cannot tell.
    `receives` counts the deliveries of the message, including this one.
    """

    body: str
    receipt: str
    receives: int
    wait_us: int


class StaleAttempt(Exception):
    """The queue cannot repeat an attempt, for example because some of its messages were deleted.

    The caller must make a new attempt, with a new id.
    """


class TaskQueue(Protocol):
    """A queue that delivers each message at least once. A message is only a hint: the head says which tasks are wanted.

    The embedded queue can look into its messages and choose among them; SQS cannot. A queue that can choose delivers
    the messages of one package in the order of their sending. In such a queue, accounts and packages take turns, and
    first chunks usually come before all others (core.turns).
    """

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """Store messages durably in the queue. Returns False for each message that the caller must send again.

        The answer is also True for a message that the queue drops because of its group.
        """

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
        """Receive up to `limit` messages, and hide them for `visibility_s`.

        A queue that can look into messages returns only messages that fit, and none of a package in `besides`. Any
        other queue returns messages that do not fit, too, and the caller puts these back.

        A call with the same attempt id within 5 minutes returns the same messages, if they are still hidden, and hides
        them for `visibility_s` again. `again` says whether the id was used before. If so, a queue that consists of
        several queues may return up to `limit` messages of each.

        For `stay`, see Stay. A queue that keeps express messages apart returns none of them if `express` is False, and
        returns only express messages if `besides` is not empty. `sent` says whether the caller has just sent messages.
        If so, a queue that usually samples only some of its servers looks into all of them, which may take a second.

        Raises:
            StaleAttempt: The id was used before, and the queue cannot say which messages that call returned.
        """

    def passed_over(self, fit: Fit) -> list[str]:
        """Return the packages whose waiting messages do not fit. Empty if this queue cannot look into messages."""

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        """Remove the waiting messages of a package. Returns the bodies of those that were never received.

        Hidden messages stay, because workers have their chunks. A queue that cannot look into messages removes none.

        Without this call, the chunks of ended packages would stay in the queue until idle workers receive them. Until
        then they would slow down each call that chooses among messages, because it looks at each package that has some.
        """

    def delete(self, receipts: Sequence[str]) -> None:
        """Remove messages; a receipt that is no longer valid is ignored."""

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """Remove the messages of chunks of which a worker has given back all tasks.

        The queue does not count these chunks when it decides whose turn it is.
        """

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """Keep messages invisible for this long from now; a receipt that is no longer valid is ignored."""

    def waiting(self) -> int:
        """Return about how many messages could be received now. A queue may stop counting at a large number."""

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """Whether the queue has a message that fits and could be received now, of a package that is not in `besides`.

        A queue that cannot look into messages only estimates this.
        """

    def express_waits(self) -> bool:
        """Whether a busy worker should fetch a first chunk (`express`) as soon as one of its executors is free.

        Always False if the queue can choose among messages: then busy workers peek instead.
        """

    def dead(self, limit: int) -> list[Message]:
        """Return up to `limit` messages that were delivered too often. They stay until they are deleted."""
