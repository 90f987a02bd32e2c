"""Stand-ins for AWS as sides of the model."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from moto.sqs.exceptions import ReceiptHandleIsInvalid
from moto.sqs.models import Message as MotoMessage
from moto.sqs.models import SQSBackend

from aws import engines
from aws.in_process import in_process, remove
from aws.stores import name_of, on_ministack, stores
from cloudpar_master.adapters.embedded.task_queue import MEMORY_S
from cloudpar_master.core.turns import Line, Turns
from cloudpar_master.ports import Fit, Message, Sending, TaskQueue
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay
from support.clock import SetClock
from support.stores import Factory, Stores

LONG_S = 3600.0
AGES_S = 10**8
ALL = 100


@contextmanager
def moto(folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters on moto, as function calls. Packages take turns, which SQS does not let them.

    Here moto keeps messages of any age. SQS drops them after 14 days, when the chunk's package has expired, and the
    other sides find them stale. And it hides a message at any age: moto counts the 12 hours, for which SQS hides one
    after its receipt, from its sending. A received message stays hidden until `TimedQueue` shows it again: moto goes by
    the test's clock, which may pass days in one step.
    """
    received = MotoMessage.mark_received
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQSBackend, "is_message_valid_based_on_retention_period", lambda *_: True)
        patch.setattr(SQSBackend, "change_message_visibility", _hold)
        patch.setattr(MotoMessage, "mark_received", lambda message, **_: received(message, AGES_S))
        numbers = count()

        def fresh() -> Stores:
            own = folder / f"moto-{next(numbers)}"
            stack.close()
            stack.callback(remove, own)
            made = stack.enter_context(in_process(own, clock))
            return made._replace(queue=TimedQueue(made.queue, clock))

        yield fresh


def _hold(backend: SQSBackend, queue_name: str, receipt_handle: str, visibility_timeout: int) -> None:
    for message in backend.get_queue(queue_name)._messages:
        if message.had_receipt_handle(receipt_handle):
            message.change_visibility(visibility_timeout)
            return
    raise ReceiptHandleIsInvalid


@contextmanager
def real_engines(folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters with tables on DynamoDB Local and queues on ElasticMQ. Links to blobs are made without a server."""

    @contextmanager
    def both(own: Path, clock: SetClock) -> Iterator[Stores]:
        tables, queues, blobs = engines.dynamodb_local(), engines.elasticmq(), engines.moto()
        yield stores(name_of(own) + "-b", clock, tables, queues, blobs)

    with by_their_own_time(both, folder, clock) as fresh:
        yield fresh


@contextmanager
def ministack(folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters on ministack, to which `make e2e` deploys."""
    with by_their_own_time(on_ministack, folder, clock) as fresh:
        yield fresh


@contextmanager
def by_their_own_time(factory: Factory, folder: Path, clock: SetClock) -> Iterator[Callable[[], Stores]]:
    """Open adapters whose queues use the real time, and let them use the test's clock."""
    with ExitStack() as stack:
        numbers = count()

        def fresh() -> Stores:
            made = stack.enter_context(factory(folder / f"own-{next(numbers)}", clock))
            return made._replace(queue=TimedQueue(made.queue, clock))

        yield fresh


class TimedQueue:
    """A queue whose messages surface by the test's clock, and whose packages take turns.

    It receives all messages of its engine at once, and hands them on when a caller requests them. It drops what the
    embedded queue drops: copies within five minutes, and messages that it still has.
    """

    def __init__(self, queue: TaskQueue, clock: SetClock) -> None:
        self._queue = queue
        self._clock = clock
        self._looks = count()
        self._turns = Turns()
        self._numbers = count()
        self._there: set[str] = set()
        self._sent: dict[str, tuple[Line, float]] = {}
        self._here: dict[str, Message] = {}
        self._out: dict[str, tuple[str, float]] = {}

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        now = self._clock.now()
        for message in messages:
            _, sent_at = self._sent.get(message.body, (None, 0.0))
            if message.body not in self._there and sent_at + MEMORY_S <= now:
                line = Line(next(self._numbers), message.account, message.package, message.first, message.cost_us)
                self._sent[message.body] = line, now
                self._there.add(message.body)
                assert self._queue.send([message]) == [True]
        return [True] * len(messages)

    def _look(self) -> None:
        """Let messages surface at the engine whose time has run out, and receive all that there are."""
        now = self._clock.now()
        for body, (receipt, until) in list(self._out.items()):
            if until <= now:
                self._queue.extend([receipt], 0.0)
                del self._out[body]
        while messages := self._queue.receive(ALL, LONG_S, f"look {next(self._looks)}"):
            self._here.update((message.body, message) for message in messages)

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
        del attempt_id, fit, again, express, sent
        self._look()
        now = self._clock.now()
        messages: list[Message] = []
        while len(messages) < limit and (lines := self._lines(besides)):
            message = self._here.pop(lines[self._turns.take(lines, stay.of(len(messages)), now)])
            self._out[message.body] = message.receipt, now + visibility_s
            messages.append(message._replace(wait_us=round((now - self._sent[message.body][1]) * 1e6)))
        return messages

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        del fit
        self._look()
        return bool(self._lines(besides))

    def _lines(self, besides: Collection[str]) -> dict[Line, str]:
        """Return the oldest message of each package."""
        oldest: dict[str, tuple[Line, str]] = {}
        for line, body in sorted((self._sent[body][0], body) for body in self._here):
            if line.package not in besides:
                oldest.setdefault(line.package, (line, body))
        return dict(oldest.values())

    def passed_over(self, fit: Fit) -> list[str]:
        return self._queue.passed_over(fit)

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        self._look()
        line = account_id, package_id
        found = sorted((self._sent[body][0], message) for body, message in self._here.items())
        gone = [message for sent, message in found if (sent.account, sent.package) == line]
        self._queue.delete([message.receipt for message in gone])
        for message in gone:
            del self._here[message.body]
            self._there.remove(message.body)
        # The look was the first receipt of a message that no caller has received.
        return [message.body for message in gone if message.receives == 1]

    def delete_unused(self, receipts: Sequence[str]) -> None:
        for body, (receipt, _) in self._out.items():
            if receipt in receipts:
                self._turns.give_back(self._sent[body][0])
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        self._queue.delete(receipts)
        self._there -= {body for body, (receipt, _) in self._out.items() if receipt in receipts}
        self._out = {body: held for body, held in self._out.items() if held[0] not in receipts}

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        self._queue.extend(receipts, LONG_S)
        until = self._clock.now() + visibility_s
        self._out.update((body, (held, until)) for body, (held, _) in self._out.items() if held in receipts)

    def waiting(self) -> int:
        self._look()
        return len(self._here)

    def express_waits(self) -> bool:
        """See the port. This queue chooses, so it needs no other one for first chunks."""
        return False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
