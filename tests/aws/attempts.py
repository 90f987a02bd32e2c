"""Adds to moto what SQS does when a request to receive is repeated: the same attempt id brings the same messages."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import moto.sqs.models
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.core.models import DEFAULT_ACCOUNT_ID

from .replies import Reply, sqs_error

REMEMBERED_S = 300
REFUSED = (
    "Value {} for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId is not valid "
    "anymore since the receive call is not retryable."
)


class _Attempt(NamedTuple):
    """What an attempt brought, until when it hides each message, and when it was made."""

    messages: list[dict[str, Any]]
    hidden: dict[str, float]
    at_s: float


class Attempts:
    """Answers requests of SQS as AWS does where `respond` does not."""

    def __init__(self, respond: Callable[[AWSPreparedRequest], AWSResponse], region: str) -> None:
        self._respond = respond
        self._region = region
        self._known: dict[tuple[str, str], _Attempt] = {}
        """Attempts by queue and attempt id."""

    def carry_out(self, request: AWSPreparedRequest) -> AWSResponse:
        """Carry out a request, or repeat an earlier attempt's answer unless one of its messages was changed."""
        body: Any = request.body
        asked = json.loads(body)
        if "ReceiveRequestAttemptId" not in asked:
            return self._respond(request)
        url, now_s = asked["QueueUrl"], moto.sqs.models.unix_time()  # type: ignore[attr-defined]
        attempt = url, asked["ReceiveRequestAttemptId"]
        before = self._known.get(attempt)
        if before and now_s < before.at_s + REMEMBERED_S and self._hidden(url, before.messages) == before.hidden:
            self._hide(url, before, asked.get("VisibilityTimeout"))
            return Reply(200, json.dumps({"Messages": before.messages}).encode()).to(request.url)
        if before and now_s < before.at_s + REMEMBERED_S and self._is_changed(url, before):
            return sqs_error("InvalidParameterValue", message=REFUSED.format(attempt[1])).to(request.url)
        answer = self._respond(request)
        messages = json.loads(answer.content).get("Messages") if answer.status_code == 200 else None
        if messages:
            self._known[attempt] = _Attempt(messages, self._hidden(url, messages), now_s)
        return answer

    def _queue(self, url: str) -> Any:
        return moto.sqs.models.sqs_backends[DEFAULT_ACCOUNT_ID][self._region].get_queue(url.rpartition("/")[2])

    def _hidden(self, url: str, messages: list[dict[str, Any]]) -> dict[str, float]:
        receipts = {message["ReceiptHandle"] for message in messages}
        stored = self._queue(url)._messages
        return {
            each.receipt_handle: each.visible_at
            for each in stored
            if each.receipt_handle in receipts and not each.visible
        }

    def _is_changed(self, url: str, before: _Attempt) -> bool:
        """Whether a message was deleted or its time hidden was changed. Visible messages are just received again."""
        hidden = self._hidden(url, before.messages)
        stored = {each.id for each in self._queue(url)._messages}
        deleted = any(message["MessageId"] not in stored for message in before.messages)
        return deleted or any(before.hidden[receipt] != until for receipt, until in hidden.items())

    def _hide(self, url: str, before: _Attempt, visibility_s: int | None) -> None:
        """Hide the messages for the whole time again: a receiver that lost the first answer starts with the second."""
        queue = self._queue(url)
        for each in queue._messages:
            if each.receipt_handle in before.hidden:
                each.change_visibility(queue.visibility_timeout if visibility_s is None else visibility_s)
        before.hidden.update(self._hidden(url, before.messages))
