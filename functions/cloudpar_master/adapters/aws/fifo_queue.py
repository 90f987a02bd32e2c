import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from . import trouble
from .backoff import attempts, batches

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

BATCH = 10
ENTRY_ATTEMPTS = 4
LONGEST_VISIBILITY_S = 12 * 3600


class FifoQueue:
    """The calls of one SQS FIFO queue."""

    def __init__(self, client: "SQSClient", url: str) -> None:
        self._client = client
        self._url = url

    def send(self, messages: Sequence[tuple[str, str]]) -> list[bool]:
        """Send (group, body) pairs; False for those that have to be sent again."""
        entries = [
            {"MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": group} for group, body in messages
        ]
        left = _in_batches(partial(self._client.send_message_batch, QueueUrl=self._url), entries)
        return [number not in left for number in range(len(messages))]

    def receive(self, limit: int, visibility_s: float, attempt_id: str) -> list[dict[str, Any]]:
        """Receive as AWS answers it, ten at a time; an attempt's parts are attempts of their own."""
        messages: list[Any] = []
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
            received = reply.get("Messages", [])
            messages += received
            if len(received) < min(BATCH, limit - first):
                break
        return messages

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages. One that AWS does not delete surfaces again."""
        entries = [{"ReceiptHandle": receipt} for receipt in receipts]
        _in_batches(partial(self._client.delete_message_batch, QueueUrl=self._url), entries)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """Keep messages invisible for so long from now."""
        visible_s = _whole(visibility_s)
        entries = [{"ReceiptHandle": receipt, "VisibilityTimeout": visible_s} for receipt in receipts]
        _in_batches(partial(self._client.change_message_visibility_batch, QueueUrl=self._url), entries)

    def waiting(self) -> int:
        """About how many messages could be received now."""
        reply = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(reply["Attributes"]["ApproximateNumberOfMessages"])


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
