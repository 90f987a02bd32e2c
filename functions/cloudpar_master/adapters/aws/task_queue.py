import hashlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import LARGEST_RECEIVES, Clock, Fit, Message, Sending
from cloudpar_master.ports.task_queue import ANY

from . import trouble
from .backoff import attempts, batches

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

BATCH = 10
ENTRY_ATTEMPTS = 4
LONGEST_VISIBILITY_S = 12 * 3600
ATTEMPT_CHARS = 110
"""An attempt id has 128 at most, and a number comes behind."""

DEAD = "dead#"
"""What a receipt of a dead letter begins with: it is good at another queue."""


class SqsTaskQueue:
    """A FIFO queue in high-throughput mode, and the one for its dead letters."""

    def __init__(self, client: "SQSClient", url: str, dead_letter_url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._dead_letter_url = dead_letter_url
        self._clock = clock

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port. What AWS did not take, and may take later, has to be sent again."""
        entries = [
            {"MessageBody": each.body, "MessageGroupId": each.group, "MessageDeduplicationId": each.group}
            for each in messages
        ]
        left = _in_batches(partial(self._client.send_message_batch, QueueUrl=self._url), entries)
        return [number not in left for number in range(len(messages))]

    def receive(
        self, limit: int, visibility_s: float, attempt_id: str, besides: Collection[str] = (), fit: Fit = ANY
    ) -> list[Message]:
        """See the port. Ten at a time; an attempt's parts are attempts of their own. SQS leaves no message out."""
        del besides, fit
        if len(attempt_id) > ATTEMPT_CHARS or not attempt_id.isascii() or not attempt_id.isprintable():
            attempt_id = hashlib.sha256(attempt_id.encode()).hexdigest()
        messages: list[Message] = []
        for part, first in enumerate(range(0, limit, BATCH)):
            try:
                reply = self._client.receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(BATCH, limit - first),
                    VisibilityTimeout=_whole(visibility_s),
                    ReceiveRequestAttemptId=f"{attempt_id}#{part}".replace(" ", "_"),
                    MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
                )
            except (ClientError, BotoCoreError) as error:
                if messages and trouble.is_passing(error):
                    break  # what is here is leased already
                raise
            received: Any = reply.get("Messages", [])
            messages += map(self._message, received)
            if len(received) < min(BATCH, limit - first):
                break
        return messages

    def _message(self, received: dict[str, Any]) -> Message:
        attributes = received["Attributes"]
        receives = int(attributes["ApproximateReceiveCount"])
        # Since when a message that surfaced again has waited, AWS does not say.
        wait_s = self._clock.now() - int(attributes["SentTimestamp"]) / 1000 if receives == 1 else 0.0
        return Message(received["Body"], received["ReceiptHandle"], receives, max(0, round(wait_s * 1e6)))

    def passed_over(self, fit: Fit) -> list[str]:
        """See the port. Messages that do not fit come by `receive`."""
        del fit
        return []

    def delete_unused(self, receipts: Sequence[str]) -> None:
        """See the port. Nothing takes turns here."""
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        """See the port. A message that AWS did not delete surfaces again, and is found to be stale then."""
        for url, handles in self._by_queue(receipts):
            entries = [{"ReceiptHandle": handle} for handle in handles]
            _in_batches(partial(self._client.delete_message_batch, QueueUrl=url), entries)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port. Twelve hours after its receipt AWS extends no message any more; then it surfaces again."""
        visible_s = _whole(visibility_s)
        for url, handles in self._by_queue(receipts):
            entries = [{"ReceiptHandle": handle, "VisibilityTimeout": visible_s} for handle in handles]
            _in_batches(partial(self._client.change_message_visibility_batch, QueueUrl=url), entries)

    def waiting(self) -> int:
        """See the port."""
        reply = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(reply["Attributes"]["ApproximateNumberOfMessages"])

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        """See the port. Whose messages wait, SQS does not say; no worker asks, since no request is held here."""
        del besides, fit
        return self.waiting() > 0

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

    def _by_queue(self, receipts: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        live = [receipt for receipt in dict.fromkeys(receipts) if not receipt.startswith(DEAD)]
        dead = [receipt.removeprefix(DEAD) for receipt in dict.fromkeys(receipts) if receipt.startswith(DEAD)]
        return ((url, handles) for url, handles in ((self._url, live), (self._dead_letter_url, dead)) if handles)


def _in_batches(call: Callable[..., Any], entries: Sequence[dict[str, Any]]) -> set[int]:
    """Make a batch call for all entries; those that AWS may do later, again. Returns what was never done.

    An entry that fails by its sender's fault is not tried again: a receipt that expired, or of a message that is gone.
    """
    left: set[int] = set()
    numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
    for batch in batches(numbered, BATCH):
        pending = {entry["Id"]: entry for entry in batch}
        for _ in attempts(ENTRY_ATTEMPTS):
            try:
                failed = call(Entries=list(pending.values())).get("Failed", [])
            except (ClientError, BotoCoreError) as error:
                if not trouble.is_passing(error):
                    raise
                break
            left.update(int(entry["Id"]) for entry in failed if not _may_pass(entry))
            pending = {entry["Id"]: pending[entry["Id"]] for entry in failed if _may_pass(entry)}
            if not pending:
                break
        left.update(map(int, pending))
    return left


def _may_pass(failed: Mapping[str, Any]) -> bool:
    return not failed["SenderFault"] or failed["Code"] in trouble.BUSY


def _whole(seconds: float) -> int:
    return min(math.ceil(seconds), LONGEST_VISIBILITY_S)
