"""What the library retries, and which error a caller gets when the retries are used up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ConnectTimeoutError, EndpointConnectionError, ReadTimeoutError

from cloudpar_master.adapters.aws.blob_store import S3BlobStore
from cloudpar_master.adapters.aws.clients import ATTEMPTS
from cloudpar_master.adapters.aws.errors import translate
from cloudpar_master.adapters.aws.table import MISSING, Table, put
from cloudpar_master.adapters.aws.task_queue import SqsTaskQueue
from cloudpar_protocol.errors import Unavailable
from support.clock import NOW, SetClock

from .replies import Reply, dynamodb_error, s3_error, sqs_error
from .stubs import offline

URL = "http://127.0.0.1:9/"
ROW = {"pk": "p", "sk": "s"}


def get() -> None:
    Table(offline().dynamodb, "t").get("p", "s")


def write() -> None:
    Table(offline().dynamodb, "t").write(put(ROW, MISSING))


def transact() -> None:
    Table(offline().dynamodb, "t").transact([put(ROW, MISSING), put({**ROW, "sk": "t"}, MISSING)])


def receive() -> None:
    SqsTaskQueue(offline().sqs, URL, URL, SetClock()).receive(1, 60.0, "attempt")


def exists() -> None:
    S3BlobStore(lambda: offline().s3, "bucket", SetClock()).exists("k")


def remove() -> None:
    S3BlobStore(lambda: offline().s3, "bucket", SetClock()).delete("k")


FOUND = Reply(200, b"", (("Last-Modified", "Fri, 15 Jan 2027 08:00:00 GMT"),))
assert NOW == 1_800_000_000.0  # a Friday, on which no row is rewritten


def get_many() -> None:
    Table(offline().dynamodb, "t").get_many([("p", "s")])


def query() -> None:
    list(Table(offline().dynamodb, "t").query("pk = :pk", {"pk": "p"}))


def scan() -> None:
    list(Table(offline().dynamodb, "t").scan("due"))


def remove_rows() -> None:
    Table(offline().dynamodb, "t").delete([("p", "s")])


FAILURES: list[tuple[Callable[[], None], Reply | Exception, Reply]] = [
    (get, dynamodb_error("ProvisionedThroughputExceededException"), Reply(200)),
    (get, dynamodb_error("InternalServerError", 500), Reply(200)),
    (get, ReadTimeoutError(endpoint_url=URL), Reply(200)),
    (write, dynamodb_error("ThrottlingException"), Reply(200)),
    (write, dynamodb_error("RequestLimitExceeded"), Reply(200)),
    (write, ConnectionClosedError(endpoint_url=URL), Reply(200)),
    (transact, dynamodb_error("ThrottlingException"), Reply(200)),
    (transact, dynamodb_error("TransactionInProgressException"), Reply(200)),
    (transact, Reply(503), Reply(200)),
    (receive, sqs_error("RequestThrottled"), Reply(200)),
    (receive, sqs_error("ThrottlingException"), Reply(200)),
    (receive, EndpointConnectionError(endpoint_url=URL), Reply(200)),
    (exists, Reply(503, b""), FOUND),
    (exists, ConnectTimeoutError(endpoint_url=URL), FOUND),
    (remove, s3_error("SlowDown"), Reply(204, b"")),
    (remove, s3_error("InternalError", 500), Reply(204, b"")),
]


@contextmanager
def answering(replies: Iterator[Reply | Exception]) -> Iterator[list[Any]]:
    """Give the clients these answers; yields the requests."""
    asked: list[Any] = []

    def send(request: Any, **_: Any) -> Any:
        asked.append(request)
        reply = next(replies)
        if isinstance(reply, Exception):
            raise reply
        return reply.to(request.url)

    clients: list[Any] = [offline().dynamodb, offline().sqs, offline().s3]
    for client in clients:
        client.meta.events.register("before-send", send)
    try:
        yield asked
    finally:
        for client in clients:
            client.meta.events.unregister("before-send", send)


def name_of(case: Callable[[], None] | Reply | Exception) -> str:
    if isinstance(case, Reply):
        return f"{case.status} {case.body.decode()}"
    return str(getattr(case, "__name__", type(case).__name__))


@pytest.mark.parametrize(("call", "failure", "answer"), FAILURES, ids=name_of)
def test_a_temporary_error_is_retried(
    call: Callable[[], None], failure: Reply | Exception, answer: Reply, no_waiting: list[float]
) -> None:
    with answering(iter([*[failure] * (ATTEMPTS - 1), answer])) as asked:
        call()
    assert len(asked) == ATTEMPTS
    # With the transaction's token in it, so it is carried out once.
    assert len({request.body for request in asked}) == 1
    assert len(no_waiting) == ATTEMPTS - 1


@pytest.mark.parametrize(("call", "failure", "answer"), FAILURES, ids=name_of)
def test_an_error_that_lasts_is_retryable_for_the_caller(
    call: Callable[[], None], failure: Reply | Exception, answer: Reply, no_waiting: list[float]
) -> None:
    with answering(iter([failure] * ATTEMPTS)) as asked, pytest.raises(Exception) as raised:  # noqa: PT011 - any
        call()
    assert len(asked) == ATTEMPTS
    assert isinstance(translate(raised.value), Unavailable)
    assert translate(raised.value).retry_after_s  # type: ignore[attr-defined]
    assert no_waiting


@pytest.mark.parametrize("call", [get, get_many, query, scan, write, transact, remove_rows])
def test_a_table_raises_unavailable_for_an_error_that_lasts(call: Callable[[], None], no_waiting: list[float]) -> None:
    """So a loop over packages goes on with the others, whatever kind of error the adapter's library raises."""
    failure = dynamodb_error("ProvisionedThroughputExceededException")
    with answering(iter([failure] * ATTEMPTS)), pytest.raises(Unavailable, match="try again"):
        call()
    assert no_waiting


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (write, dynamodb_error("AccessDeniedException")),
        (write, dynamodb_error("ValidationException")),
        (receive, sqs_error("AWS.SimpleQueueService.NonExistentQueue")),
        (remove, s3_error("AccessDenied", 403)),
    ],
    ids=name_of,
)
def test_a_permanent_error_is_not_retried(call: Callable[[], None], refusal: Reply) -> None:
    with answering(iter([refusal])) as asked, pytest.raises(Exception) as raised:  # noqa: PT011 - any
        call()
    assert len(asked) == 1
    assert translate(raised.value) is raised.value
