import hashlib
import logging
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from zlib import crc32

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import LARGEST_RECEIVES, Clock, Fit, Message, Sending, StaleAttempt, TaskQueue
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay

from .fifo_queue import BATCH, FifoQueue

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

ATTEMPT_CHARS = 110
"""An attempt id with more characters is hashed: SQS accepts at most 128 characters, and FifoQueue adds a number."""

EXPRESS, DEAD, MAIN = "express#", "dead#", ""
"""The prefix of a receipt tells from which queue its message is. Without it, the master would try to delete a message
from the wrong queue, and the message would become visible again. SQS's own receipts contain no #."""

MAIN_FIRST: Final = 4
"""About one attempt in this many looks into the main queue first, even if the express queue has messages. Otherwise the
workers would get no chunks of a long package while many small packages start."""

EMPTY_S: Final = 0.2
"""After a process has found the express queue empty, it looks into the main queue first for this many seconds, unless
it has found the main queue empty, too. So an empty express queue costs a busy process at most five calls a second, and
a first chunk waits at most EMPTY_S longer."""

LOOK_S: Final = 1.0
"""Seconds for which a process answers busy workers from its last look at the express queue. Then it looks again."""

log = logging.getLogger("cloudpar_master")


class SqsTaskQueue(TaskQueue):
    """Two FIFO queues in high-throughput mode: the express one for the first chunks of packages, and the main one.

    SQS cannot choose among messages, so in a single queue a first chunk would wait behind all earlier messages. Both
    queues have the same dead-letter queue.

    Args:
        client: The client for SQS.
        url: The URL of the main queue.
        dead_letter_url: The URL of the dead-letter queue.
        clock: Tells the time, from which the queue computes how long messages have waited.
        express_url: The URL of the express queue. If it is "", all chunks go through the main queue. It is "" for some
            seconds if an update of the deployment replaces a function's code before its environment variables.
    """

    def __init__(
        self, client: "SQSClient", url: str, dead_letter_url: str, clock: Clock, express_url: str = ""
    ) -> None:
        self._client = client
        self._main = FifoQueue(client, url, clock)
        self._express = FifoQueue(client, express_url, clock) if express_url else None
        # `send` uses the queues in this order: if the process dies in between, it has sent the first chunks of
        # packages.
        self._queues = {} if self._express is None else {EXPRESS: self._express}
        self._queues |= {MAIN: self._main, DEAD: FifoQueue(client, dead_letter_url, clock)}
        self._dead_letter_url = dead_letter_url
        self._clock = clock

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port. Returns False for a message that AWS has not accepted.

        Raises:
            ClientError, BotoCoreError: AWS refuses a whole call, and would refuse it again.
        """
        sent = [False] * len(messages)
        for queue in self._queues.values():
            numbers = [number for number, each in enumerate(messages) if self._queue_of(each) is queue]
            if numbers:
                done = queue.send([(messages[number].group, messages[number].body) for number in numbers])
                for number, is_sent in zip(numbers, done, strict=True):
                    sent[number] = is_sent
        return sent

    def _queue_of(self, message: Sending) -> FifoQueue:
        return self._express if message.express and self._express is not None else self._main

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
        """See the port. Returns messages of the first queue that has any.

        If there is an express queue, a busy worker (`besides` is not empty) gets messages of the express queue only.

        A repeated attempt looks into all queues that it may use, because the master does not know which queue returned
        messages the first time. If the attempt skipped this queue, its messages would stay invisible until their
        visibility timeout ends. If one queue fails, the messages of the other queue are returned.

        SQS answers a call that does not wait from a sample of its servers, and may miss messages that were sent into an
        empty queue. Therefore, if `sent` is True, the call for a queue that has just got messages waits for up to a
        second. Other calls never wait: if the queue is empty, each of them would keep a Lambda function busy for this
        second.

        Raises:
            StaleAttempt, ClientError, BotoCoreError: One of the queues failed, and no messages came.
        """
        del fit, stay
        # SQS refuses an id that is too long or has characters beyond printable ASCII. Then the worker would get no
        # chunks.
        if len(attempt_id) > ATTEMPT_CHARS or not attempt_id.isascii() or not attempt_id.isprintable():
            attempt_id = hashlib.sha256(attempt_id.encode()).hexdigest()
        messages: list[Message] = []
        failures: list[Exception] = []
        for prefix, queue in self._in_order(attempt_id, busy=bool(besides), express=express):
            try:
                waits = sent and queue.seen_within(EMPTY_S) is True
                received = queue.receive(limit, visibility_s, attempt_id, wait_s=1 if waits else 0)
            except (ClientError, BotoCoreError, StaleAttempt) as failure:
                failures.append(failure)
                continue
            messages += [self._message(each, prefix) for each in received]
            if messages and not again:
                break
        if failures and not messages:
            raise failures[0]
        for hidden in failures:  # the messages of the other queue are hidden now: the worker has to get them
            log.warning("one of the two task queues could not be read: %r", hidden)
        return messages

    def _in_order(self, attempt_id: str, *, busy: bool, express: bool) -> list[tuple[str, FifoQueue]]:
        """Return the queues that an attempt looks into, in order, with the prefixes of their receipts."""
        if self._express is None:
            return [(MAIN, self._main)]
        queues = [(EXPRESS, self._express)] if express else []
        if busy:
            return queues
        # The id decides whether it is the main queue's turn, so that a repeated attempt mostly has the same order.
        in_turn = crc32(attempt_id.encode()) % MAIN_FIRST == 0
        express_is_empty = self._express.seen_within(EMPTY_S) is False
        main_first = (in_turn or express_is_empty) and self._main.seen_within(EMPTY_S) is not False
        queues.insert(0 if main_first else len(queues), (MAIN, self._main))
        return queues

    def _message(self, received: dict[str, Any], prefix: str) -> Message:
        attributes = received["Attributes"]
        receives = int(attributes["ApproximateReceiveCount"])
        # AWS does not say when a message became visible again. If the wait of such a message were counted from its
        # sending, the time of the lost lease would look like waiting, and the window of the package would shrink.
        wait_s = self._clock.now() - int(attributes["SentTimestamp"]) / 1000 if receives == 1 else 0.0
        return Message(received["Body"], prefix + received["ReceiptHandle"], receives, max(0, round(wait_s * 1e6)))

    def passed_over(self, fit: Fit) -> list[str]:
        """See the port. SQS cannot look into messages, so `receive` also returns messages that do not fit."""
        del fit
        return []

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        """See the port. SQS cannot look into messages, so those of an ended package stay until they are received."""
        del account_id, package_id
        return []

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """See the port. In SQS packages do not take turns, so there is nothing to correct."""
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        """See the port.

        If AWS fails to delete a message, the master receives the message again and finds that its chunk is not
        wanted.
        """
        for queue, handles in self._by_queue(receipts):
            queue.delete(handles)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port.

        AWS hides no message for more than twelve hours after its receipt; then the message becomes visible again.
        """
        for queue, handles in self._by_queue(receipts):
            queue.extend(handles, visibility_s)

    def waiting(self) -> int:
        """See the port.

        Looks into the express queue only if no message waits in the main queue, because each look costs a request to
        SQS.
        """
        return self._main.waiting() or (self._express.waiting() if self._express is not None else 0)

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """See the port. SQS does not say whose messages wait.

        A busy worker (`besides` is not empty) gets only messages of the express queue, so for this worker the result
        says whether the express queue has messages. For an idle worker the result says whether one of the two queues
        has messages.
        """
        del fit
        return self.express_waits() if besides else self.waiting() > 0

    def express_waits(self) -> bool:
        """See the port. This process asks SQS at most once in LOOK_S seconds, however many workers publish."""
        if self._express is None:
            return False
        seen = self._express.seen_within(LOOK_S)
        if seen is not None:
            return seen
        try:
            return self._express.waiting() > 0
        except (ClientError, BotoCoreError) as failure:  # only a hint: the publication is answered without it
            log.warning("the express queue could not be looked at: %r", failure)
            self._express.note(has_messages=False)  # otherwise every publication would wait for this call
            return False

    def dead(self, limit: int) -> list[Message]:
        """See the port.

        SQS hides the messages for as long as this queue's visibility timeout says (infra/lib/queue.ts).
        """
        reply = self._client.receive_message(
            QueueUrl=self._dead_letter_url,
            MaxNumberOfMessages=min(BATCH, limit),
            # If a reply is lost, botocore's next try with this id brings the same messages. Without the id, that try
            # would bring other messages, and the first messages would stay hidden.
            ReceiveRequestAttemptId=uuid4().hex,
        )
        return [
            Message(received["Body"], DEAD + received["ReceiptHandle"], LARGEST_RECEIVES, 0)
            for received in reply.get("Messages", [])
        ]

    def _by_queue(self, receipts: Sequence[str]) -> Iterator[tuple[FifoQueue, list[str]]]:
        handles: dict[str, list[str]] = {prefix: [] for prefix in (MAIN, EXPRESS, DEAD)}
        for receipt in dict.fromkeys(receipts):
            prefix = next((each for each in (EXPRESS, DEAD) if receipt.startswith(each)), MAIN)
            handles[prefix].append(receipt.removeprefix(prefix))
        for prefix, queue in self._queues.items():
            if handles[prefix]:
                yield queue, handles[prefix]
