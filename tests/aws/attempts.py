"""What moto does not know of queues: the same attempt to receive brings the same messages."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import moto.sqs.models
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.core.models import DEFAULT_ACCOUNT_ID

from .replies import Reply

REMEMBERED_S = 300


class _Attempt(NamedTuple):
    """What it brought, and when."""

    messages: list[dict[str, Any]]
    at_s: float


class Attempts:
    """Answers requests of SQS as AWS does, where `respond` does not."""

    def __init__(self, respond: Callable[[AWSPreparedRequest], AWSResponse], region: str) -> None:
        self._respond = respond
        self._region = region
        self._known: dict[tuple[str, str], _Attempt] = {}
        """By queue and id."""

    def carry_out(self, request: AWSPreparedRequest) -> AWSResponse:
        """Do it, or bring again what an earlier attempt brought and still has."""
        body: Any = request.body
        asked = json.loads(body)
        if "ReceiveRequestAttemptId" not in asked:
            return self._respond(request)
        attempt, now_s = (asked["QueueUrl"], asked["ReceiveRequestAttemptId"]), moto.sqs.models.unix_time()  # type: ignore[attr-defined]
        before = self._known.get(attempt)
        if before and now_s < before.at_s + REMEMBERED_S:
            left = self._held(asked["QueueUrl"], asked["VisibilityTimeout"], before)
            if left:
                return Reply(200, json.dumps({"Messages": left}).encode()).to(request.url)
        answer = self._respond(request)
        messages = json.loads(answer.content).get("Messages") if answer.status_code == 200 else None
        if messages:
            self._known[attempt] = _Attempt(messages, now_s)
        return answer

    def _held(self, url: str, visibility_s: int, before: _Attempt) -> list[dict[str, Any]]:
        """Its messages that nobody deleted or got since, hidden anew."""
        queue = moto.sqs.models.sqs_backends[DEFAULT_ACCOUNT_ID][self._region].get_queue(url.rpartition("/")[2])
        held = {message.receipt_handle: message for message in queue._messages if not message.visible}
        left = [message for message in before.messages if message["ReceiptHandle"] in held]
        for message in left:
            held[message["ReceiptHandle"]].change_visibility(visibility_s)
        return left
