import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4
from zlib import crc32

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import LARGEST_RECEIVES, Clock, Fit, Message, Sending
from cloudpar_master.ports.task_queue import ANY

from . import trouble
from .fifo_queue import BATCH, FifoQueue

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

ATTEMPT_CHARS = 110
"""An attempt id has 128 at most, and a number comes behind."""

EXPRESS, DEAD, MAIN = "express#", "dead#", ""
"""What the receipts of messages in each queue begin with, so that they go back to it. SQS's own contain no #."""

MAIN_FIRST: Final = 4
"""One attempt in so many looks into the main queue first, so a stream of small packages does not stop a long one."""

EMPTY_S: Final = 0.2
"""How long a process that found the express queue empty looks into the main queue first, in seconds. So an empty
express queue costs a busy process about five calls a second, and a first chunk waits for so much longer at most."""

JUST_NOW_S: Final = 0.1
"""How long such a process does not look into the express queue at all, in seconds. Idle workers ask less often."""

NEVER: Final = 0.0

LOOK_S: Final = 1.0
"""How long a process remembers whether the express queue had messages, in seconds: busy workers hear of it."""


class SqsTaskQueue:
    """Two FIFO queues in high-throughput mode: the express one for the first chunks of packages, and the main one.

    SQS chooses no messages, so a first chunk would wait in one queue behind everything that was sent before. The third
    queue has the dead letters of both.

    Args:
        client: SQS.
        url: The main queue.
        dead_letter_url: The dead letters.
        clock: The time.
        express_url: The express queue. "": there is none (the functions' code may be deployed some seconds before their
            environment), and all chunks go by the main queue.
    """

    def __init__(
        self, client: "SQSClient", url: str, dead_letter_url: str, clock: Clock, express_url: str = ""
    ) -> None:
        self._client = client
        self._main = FifoQueue(client, url)
        self._express = FifoQueue(client, express_url) if express_url else None
        self._dead = FifoQueue(client, dead_letter_url)
        self._dead_letter_url = dead_letter_url
        self._clock = clock
        self._empty_at = {EXPRESS: NEVER, MAIN: NEVER}
        self._looked_at = 0.0
        self._seen = False

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port. What AWS did not take, and may take later, has to be sent again."""
        sent = [False] * len(messages)
        for queue, express in ((self._express, True), (self._main, False)):
            numbers = [
                number
                for number, each in enumerate(messages)
                if (each.express and self._express is not None) == express
            ]
            if queue is not None and numbers:
                done = queue.send([(messages[number].group, messages[number].body) for number in numbers])
                for number, is_sent in zip(numbers, done, strict=True):
                    sent[number] = is_sent
                if express:
                    self._empty_at[EXPRESS] = NEVER
        return sent

    def receive(
        self,
        limit: int,
        visibility_s: float,
        attempt_id: str,
        besides: Collection[str] = (),
        fit: Fit = ANY,
        *,
        again: bool = False,
    ) -> list[Message]:
        """See the port. Brings messages of the first queue that has any; for a busy worker, of the express queue only.

        A repeated attempt looks into all of its queues, since it cannot know which one had something the first time:
        without that, the messages of the other one would stay invisible to the end of their visibility.
        """
        del fit
        if len(attempt_id) > ATTEMPT_CHARS or not attempt_id.isascii() or not attempt_id.isprintable():
            attempt_id = hashlib.sha256(attempt_id.encode()).hexdigest()
        messages: list[Message] = []
        for prefix, queue in self._in_order(attempt_id, busy=bool(besides), again=again):
            try:
                received = queue.receive(limit, visibility_s, attempt_id)
            except (ClientError, BotoCoreError) as error:
                if messages and trouble.is_passing(error):
                    break  # what is here is leased already
                raise
            self._empty_at[prefix] = NEVER if received else self._clock.now()
            messages += [self._message(each, prefix) for each in received]
            if messages and not again:
                break
        return messages

    def _in_order(self, attempt_id: str, *, busy: bool, again: bool) -> list[tuple[str, FifoQueue]]:
        """The queues that an attempt looks into, with the prefixes of their receipts."""
        main = (MAIN, self._main)
        if self._express is None:
            return [main]
        express = (EXPRESS, self._express)
        if busy:
            return [express]
        if self._is_empty(EXPRESS, JUST_NOW_S) and not again:
            return [main]
        in_turn = crc32(attempt_id.encode()) % MAIN_FIRST == 0
        main_first = not self._is_empty(MAIN) and (in_turn or self._is_empty(EXPRESS))
        return [main, express] if main_first else [express, main]

    def _is_empty(self, prefix: str, lately_s: float = EMPTY_S) -> bool:
        """Whether this process found a queue empty when it last looked, and that was just now."""
        return 0 <= self._clock.now() - self._empty_at[prefix] < lately_s

    def _message(self, received: dict[str, Any], prefix: str) -> Message:
        attributes = received["Attributes"]
        receives = int(attributes["ApproximateReceiveCount"])
        # Since when a message that surfaced again has waited, AWS does not say.
        wait_s = self._clock.now() - int(attributes["SentTimestamp"]) / 1000 if receives == 1 else 0.0
        return Message(received["Body"], prefix + received["ReceiptHandle"], receives, max(0, round(wait_s * 1e6)))

    def passed_over(self, fit: Fit) -> list[str]:
        """See the port. Messages that do not fit come by `receive`."""
        del fit
        return []

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """See the port. Nothing takes turns here."""
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        """See the port. A message that AWS did not delete surfaces again, and is found to be stale then."""
        for queue, handles in self._by_queue(receipts):
            queue.delete(handles)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port. Twelve hours after its receipt AWS extends no message any more; then it surfaces again."""
        for queue, handles in self._by_queue(receipts):
            queue.extend(handles, visibility_s)

    def waiting(self) -> int:
        """See the port. Looks into the express queue only if nothing waits in the main one: each look is a call."""
        return self._main.waiting() or (self._express.waiting() if self._express is not None else 0)

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """See the port. Whose messages wait, SQS does not say; a busy worker can have those of the express queue."""
        del fit
        return self.express_waits() if besides else self.waiting() > 0

    def express_waits(self) -> bool:
        """See the port. Looks once in LOOK_S at most, however many workers publish."""
        now = self._clock.now()
        if self._express is not None and not 0 <= now - self._looked_at < LOOK_S:
            self._looked_at, self._seen = now, self._express.waiting() > 0
        return self._seen

    def dead(self, limit: int) -> list[Message]:
        """See the port. In our stack nobody asks: AWS brings dead letters to a function."""
        reply = self._client.receive_message(
            QueueUrl=self._dead_letter_url,
            MaxNumberOfMessages=min(BATCH, limit),
            ReceiveRequestAttemptId=uuid4().hex,  # the library's next try brings the same, if a reply got lost
        )
        return [
            Message(received["Body"], DEAD + received["ReceiptHandle"], LARGEST_RECEIVES, 0)
            for received in reply.get("Messages", [])
        ]

    def _by_queue(self, receipts: Sequence[str]) -> Iterator[tuple[FifoQueue, list[str]]]:
        main: list[str] = []
        express: list[str] = []
        dead: list[str] = []
        for receipt in dict.fromkeys(receipts):
            if receipt.startswith(DEAD):
                dead.append(receipt.removeprefix(DEAD))
            elif receipt.startswith(EXPRESS):
                express.append(receipt.removeprefix(EXPRESS))
            else:
                main.append(receipt)
        for queue, handles in ((self._main, main), (self._express, express), (self._dead, dead)):
            if queue is not None and handles:
                yield queue, handles
