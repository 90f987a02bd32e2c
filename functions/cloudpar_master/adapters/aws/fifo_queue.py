import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from cloudpar_master.ports import Clock, StaleAttempt

from . import errors
from .backoff import attempts, batches

if TYPE_CHECKING:
    from types_boto3_sqs import SQSClient

BATCH = 10
"""How many messages SQS accepts or returns in one call at most."""

ENTRY_ATTEMPTS = 4
"""How many times, at most, a batch call is made if SQS temporarily refuses some of its entries."""

LONGEST_VISIBILITY_S = 12 * 3600
"""The longest visibility timeout that SQS accepts, in seconds."""

NEVER: Final = 0.0
"""The value of `_seen_at` before this process has seen the queue. This time is so long ago that `seen_within` returns
None."""


class FifoQueue:
    """Sends requests to one SQS FIFO queue, and remembers whether the queue had messages when this process last saw it.

    The methods raise ClientError or BotoCoreError if AWS refuses a request or does not answer. `send`, `delete` and
    `extend` raise an error only if AWS would refuse the request again.
    """

    def __init__(self, client: "SQSClient", url: str, clock: Clock) -> None:
        self._client = client
        self._url = url
        self._clock = clock
        self._has_messages = False
        self._seen_at = NEVER

    def note(self, *, has_messages: bool) -> None:
        """Record whether this process has just seen messages in the queue."""
        self._has_messages, self._seen_at = has_messages, self._clock.now()

    def seen_within(self, seconds: float) -> bool | None:
        """Whether the queue had messages when this process last saw it; None if that is `seconds` ago or more."""
        return self._has_messages if 0 <= self._clock.now() - self._seen_at < seconds else None

    def send(self, messages: Sequence[tuple[str, str]]) -> list[bool]:
        """Send (group, body) pairs. Returns False for each pair that must be sent again, and True for all others."""
        # The group is also the deduplication id: without it, a chunk that two masters send, or one master sends twice,
        # would be leased twice. Each chunk has a group of its own, because SQS hands out no other message of a group
        # while a worker has a message of that group.
        entries = [
            {"MessageBody": body, "MessageGroupId": group, "MessageDeduplicationId": group} for group, body in messages
        ]
        left = _in_batches(partial(self._client.send_message_batch, QueueUrl=self._url), entries)
        if len(left) < len(messages):
            self.note(has_messages=True)  # otherwise this process may consider the queue empty
        return [number not in left for number in range(len(messages))]

    def receive(self, limit: int, visibility_s: float, attempt_id: str, *, wait_s: int = 0) -> list[dict[str, Any]]:
        """Receive up to `limit` messages, as the dictionaries that botocore returns.

        A request to SQS returns at most ten messages, so this method sends several requests for a larger `limit`.

        If `wait_s` is not 0, SQS looks for messages on all its servers (long polling), and waits at most `wait_s`
        seconds for the first message.

        Raises:
            StaleAttempt: AWS refuses to repeat the attempt with this id.
            ClientError, BotoCoreError: The first call failed. If a later call fails, the messages received so far are
                returned.
        """
        messages: list[Any] = []
        for part, first in enumerate(range(0, limit, BATCH)):
            try:
                reply = self._client.receive_message(
                    QueueUrl=self._url,
                    MaxNumberOfMessages=min(BATCH, limit - first),
                    VisibilityTimeout=_whole(visibility_s),
                    # Once messages have come, waiting for more would only delay those that have come.
                    WaitTimeSeconds=0 if messages else wait_s,
                    # SQS answers a repeated id with the same messages. Each call needs another id: otherwise every call
                    # would bring the messages of the first call. SQS refuses ids with spaces.
                    ReceiveRequestAttemptId=f"{attempt_id}#{part}".replace(" ", "_"),
                    MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
                )
            except (ClientError, BotoCoreError) as error:
                if messages:
                    # SQS has hidden these messages already. If these messages were not leased now, they would wait
                    # until their visibility timeout ends.
                    return messages
                if _is_stale_attempt(error):
                    raise StaleAttempt from error
                raise
            received = reply.get("Messages", [])
            messages += received
            if len(received) < min(BATCH, limit - first):
                break
        self.note(has_messages=len(messages) == limit)  # if there were fewer, the queue is probably empty
        return messages

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages.

        A message that AWS fails to delete becomes visible again when its visibility timeout ends.
        """
        entries = [{"ReceiptHandle": receipt} for receipt in receipts]
        _in_batches(partial(self._client.delete_message_batch, QueueUrl=self._url), entries)

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """Keep messages invisible for `visibility_s` from now. Messages whose receipt has expired stay as they are."""
        visible_s = _whole(visibility_s)
        entries = [{"ReceiptHandle": receipt, "VisibilityTimeout": visible_s} for receipt in receipts]
        _in_batches(partial(self._client.change_message_visibility_batch, QueueUrl=self._url), entries)

    def waiting(self) -> int:
        """Return about how many messages could be received now."""
        reply = self._client.get_queue_attributes(QueueUrl=self._url, AttributeNames=["ApproximateNumberOfMessages"])
        number = int(reply["Attributes"]["ApproximateNumberOfMessages"])
        self.note(has_messages=number > 0)
        return number


def _in_batches(call: Callable[..., Any], entries: Sequence[dict[str, Any]]) -> set[int]:
    """Make a call for each batch of entries, and again for the entries that AWS temporarily refuses.

    If AWS says that the sender is at fault, the entry is sent again only if the error code is in `errors.BUSY`. Any
    other code usually means that the receipt has expired or that the message is gone.

    Returns:
        The numbers of the entries that AWS has not carried out.

    Raises:
        ClientError, BotoCoreError: AWS refuses a whole call, and would refuse it again.
    """
    left: set[int] = set()
    numbered = [{"Id": str(number), **entry} for number, entry in enumerate(entries)]
    for batch in batches(numbered, BATCH):
        pending = {entry["Id"]: entry for entry in batch}
        for _ in attempts(ENTRY_ATTEMPTS):
            try:
                failed = call(Entries=list(pending.values())).get("Failed", [])
            except (ClientError, BotoCoreError) as error:
                if not errors.is_passing(error):
                    raise
                break  # botocore has tried several times already: the caller learns which entries are left
            left.update(int(entry["Id"]) for entry in failed if not _may_pass(entry))
            pending = {entry["Id"]: pending[entry["Id"]] for entry in failed if _may_pass(entry)}
            if not pending:
                break
        left.update(map(int, pending))
    return left


def _may_pass(failed: Mapping[str, Any]) -> bool:
    return not failed["SenderFault"] or failed["Code"] in errors.BUSY


def _is_stale_attempt(error: Exception) -> bool:
    """Whether AWS refuses to repeat the attempt with this id.

    AWS refuses this after one of the attempt's messages was deleted or extended. If AWS has throttled a request of
    botocore, it also refuses botocore's repetition of the request, because both have the same id.
    """
    return (
        isinstance(error, ClientError)
        and errors.code(error).startswith("InvalidParameterValue")
        and "ReceiveRequestAttemptId" in str(error)
    )


def _whole(seconds: float) -> int:
    """Round up to whole seconds, which SQS requires, but return at most LONGEST_VISIBILITY_S.

    If the time were rounded down, a message would become visible while its worker has the lease.
    """
    return min(math.ceil(seconds), LONGEST_VISIBILITY_S)
