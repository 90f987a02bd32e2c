"""A bad day of AWS: requests are throttled, fail or get no answer, and series of writes conflict with transactions."""

import json
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import ReadTimeoutError

from aws.in_process import ENDPOINT
from aws.replies import Reply, conflict, dynamodb_error, s3_error, sqs_error

from .breaking import AwsFuse

THROTTLED, FAILED, UNANSWERED = 0.10, 0.05, 0.01
"""The shares of such requests. Half of the failed requests and all unanswered ones have taken effect."""

SHARES = {"throttled": THROTTLED, "failed": FAILED, "timed out": UNANSWERED}

CALM, STORM = 12, 3
"""After CALM writes to tables, STORM writes in a row conflict with another transaction."""

THROTTLING: dict[str, Callable[[], Reply]] = {
    "dynamodb": lambda: dynamodb_error("ThrottlingException"),
    "sqs": lambda: sqs_error("RequestThrottled"),
    "s3": lambda: s3_error("SlowDown"),
}
FAILURE: dict[str, Callable[[], Reply]] = {
    "dynamodb": lambda: dynamodb_error("InternalServerError", 500),
    "sqs": lambda: sqs_error("InternalError", 500),
    "s3": lambda: s3_error("InternalError", 500),
}


class BadDay(AwsFuse):
    """Disturbs requests, or only counts them. A request that the library repeats counts as another one.

    Attributes:
        requests: The number of requests, by service.
        disturbances: The disturbances by service and kind: those of SHARES, and conflicts.
    """

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self.requests: Counter[str] = Counter()
        self.disturbances: Counter[tuple[str, str]] = Counter()
        self._random = None if seed is None else random.Random(seed)
        self._writes = self._random.randrange(CALM + STORM) if self._random else 0
        self._late: Reply | ReadTimeoutError | None = None

    def asked(self, service: str, request: AWSPreparedRequest) -> AWSResponse | None:
        self.requests[service] += 1
        self._late = None
        if self._random is None:
            return None
        reply = self._storm(request) if service == "dynamodb" else None
        if reply is None:
            reply = self._disturbance(service, self._random.random())
        return None if reply is None else reply.to(request.url)

    def _disturbance(self, service: str, chance: float) -> Reply | None:
        if chance < THROTTLED:
            self.disturbances[service, "throttled"] += 1
            return THROTTLING[service]()
        if chance < THROTTLED + FAILED / 2:
            self.disturbances[service, "failed"] += 1
            return FAILURE[service]()
        if chance < THROTTLED + FAILED:
            self.disturbances[service, "failed"] += 1
            self._late = FAILURE[service]()
        elif chance < THROTTLED + FAILED + UNANSWERED:
            self.disturbances[service, "timed out"] += 1
            self._late = ReadTimeoutError(endpoint_url=ENDPOINT)
        return None

    def _storm(self, request: AWSPreparedRequest) -> Reply | None:
        operation = self.calls[-1]
        if operation not in {"PutItem", "UpdateItem", "TransactWriteItems"}:
            return None
        self._writes += 1
        if self._writes % (CALM + STORM) < CALM:
            return None
        self.disturbances["dynamodb", "conflicts"] += 1
        if operation == "TransactWriteItems":
            body: Any = request.body
            return conflict(len(json.loads(body)["TransactItems"]))
        return dynamodb_error("TransactionConflictException")

    def sent(self, request: AWSPreparedRequest) -> AWSResponse | None:
        late = self._late
        if isinstance(late, ReadTimeoutError):
            raise late
        return None if late is None else late.to(request.url)
