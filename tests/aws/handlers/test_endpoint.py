"""The functions behind the HTTP API."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Acknowledge, AwaitTasks, Cursor, Hello, StartTasks
from cloudpar_protocol.errors import InvalidToken
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.payloads import InlineData, TaskCode, TaskResult
from cloudpar_protocol.worker_messages import Publication, PublishResults, RetrieveTasks
from support.stores import Stores

from .calls import ask, body_of, event
from .conftest import USER_TOKEN, WORKER_TOKEN, Context, Start

Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def account(stack: Stores) -> None:
    stack.accounts.create(AccountRecord("a", "ann", hash_token(USER_TOKEN), "active", 10**12, 0, 0, 0.0))


def start_tasks(tasks: int = 1) -> StartTasks:
    return StartTasks(
        idempotency_key="k", n=tasks, python="3.11", code=TaskCode("0" * 64, b"secret code"),
        data=InlineData([b"secret data"] * tasks),
    )  # fmt: skip


def test_a_private_api_sends_events_of_another_format(start: Start) -> None:
    """A private API is a REST API: the path has another name, and headers are as the client wrote them."""
    made = event("/v1/hello", codec.encode(Hello()))
    headers = {name.title(): value for name, value in made["headers"].items()}
    of_rest = {
        "resource": "/v1/{name}", "path": "/v1/hello", "httpMethod": "POST", "headers": headers,
        "multiValueHeaders": {name: [value] for name, value in headers.items()}, "queryStringParameters": None,
        "requestContext": {"stage": "cloudpar", "path": "/cloudpar/v1/hello"},
        "body": made["body"], "isBase64Encoded": True,
    }  # fmt: skip
    answer = start("client").handle(of_rest, Context())
    assert answer["statusCode"] == 200
    assert codec.decode(body_of(answer), routes.HELLO.reply).account_id == "a"


def test_a_package_from_its_start_to_its_end(start: Start, stack: Stores, log: Log) -> None:
    client, worker = start("client"), start("worker")
    package_id = ask(client, routes.START_TASKS, start_tasks()).package_id
    asked = RetrieveTasks(attempt_id="t", worker_id="w", executors=1, chunks=4)
    (lease,) = ask(worker, routes.RETRIEVE_TASKS, asked, WORKER_TOKEN).leases
    assert lease.lease_s == 30.0
    publication = Publication(
        package_id=package_id, lease_id=lease.lease_id, receipt=lease.receipt, start=lease.start, end=lease.end,
        generation=lease.generation, seq=0, results=[TaskResult(0, "ok", 1000, data=b"secret result")], closes=True,
    )  # fmt: skip
    ask(
        worker,
        routes.PUBLISH_RESULTS,
        PublishResults(worker_id="w", executors=1, publications=[publication]),
        WORKER_TOKEN,
    )
    (status,) = ask(client, routes.AWAIT_TASKS, AwaitTasks(packages=[Cursor(package_id=package_id)])).packages
    assert status.state == "completed"
    assert [result.data for result in status.results] == [b"secret result"]
    ask(client, routes.ACKNOWLEDGE, Acknowledge(package_ids=[package_id]))
    account = stack.accounts.get("a")
    assert account is not None
    assert (account.spent_us, account.reserved_us) == (1000, 0)

    lines = log()
    requests = [line for line in lines if line.get("message") == "request"]
    assert [line["route"] for line in requests] == [
        "start_tasks", "retrieve_tasks", "publish_results", "await_tasks", "acknowledge",
    ]  # fmt: skip
    for line in requests:
        assert line["package_ids"] == [package_id]
        assert line["status"] == 200
        assert line["request_id"] == "request-1"
        assert line["duration_ms"] > 0
        assert line["service"]
    assert requests[0]["account_id"] == "a"
    assert requests[1]["worker_id"] == "w"
    assert "secret" not in json.dumps(lines)
    assert USER_TOKEN not in json.dumps(lines)
    assert WORKER_TOKEN not in json.dumps(lines)
    figures = [line for line in lines if "_aws" in line]
    assert [(line.get("PackagesStarted"), line.get("TasksPublished")) for line in figures] == [
        ([1.0], None),
        (None, [1.0]),
    ]


def test_a_json_request_gets_a_json_reply(start: Start) -> None:
    answer = start("client").handle(event("/v1/hello", b'{"v":1}', media=codec.JSON), Context())
    assert answer["headers"]["content-type"] == codec.JSON
    assert answer["isBase64Encoded"] is False
    assert json.loads(answer["body"])["name"] == "ann"


def test_a_stage_in_the_path_is_ignored(start: Start) -> None:
    assert start("client").handle(event("/prod/v1/hello", codec.encode(Hello())), Context())["statusCode"] == 200


def test_both_roles_may_say_hello(start: Start) -> None:
    client = start("client")
    assert ask(client, routes.HELLO, Hello()).role == "user"
    assert ask(client, routes.HELLO, Hello(), WORKER_TOKEN).role == "worker"
    for token in ("", "wrong"):
        with pytest.raises(InvalidToken):
            ask(client, routes.HELLO, Hello(), token)


@pytest.mark.parametrize("path", ["/v1/retrieve_tasks", "/v1/create_account", "/v1/nonsense", "/", ""])
def test_a_route_that_a_function_does_not_serve_is_not_found(start: Start, path: str, log: Log) -> None:
    """The operator's routes are on no API, with any token."""
    answer = start("client").handle(event(path, b"\x80"), Context())
    assert answer["statusCode"] == 404
    (line,) = log()
    assert (line["route"], line["error"], line["level"]) == ("unknown", "not_found", "INFO")


def test_a_body_over_the_limit_is_refused(start: Start) -> None:
    client = start("client")
    for media in (codec.MSGPACK, codec.JSON):
        for size, status in ((BODY_BYTES, 400), (BODY_BYTES + 1, 413)):
            answer = client.handle(event("/v1/hello", b"0" * size, media=media), Context())
            assert answer["statusCode"] == status


def test_a_body_that_is_no_message_is_refused(start: Start) -> None:
    client = start("client")
    damaged = event("/v1/hello", b"") | {"body": "*"}
    for given in (
        damaged,
        event("/v1/hello", b"\xc1"),
        event("/v1/hello", b"") | {"body": None, "isBase64Encoded": False},
    ):
        assert client.handle(given, Context())["statusCode"] == 400
    assert client.handle(event("/v1/hello", b"x", media="text/plain"), Context())["statusCode"] == 400
    assert client.handle({"rawPath": "/v1/hello"}, Context())["statusCode"] == 401


class Failing:
    """A store that always fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fail(*_: Any) -> None:
            raise self.error

        return fail


def fail_with(client: ModuleType, error: Exception) -> Any:
    """Return the answer of a function that cannot read its accounts."""
    endpoint = client.handle.__self__
    endpoint._dispatcher._backend = endpoint._dispatcher._backend._replace(accounts=Failing(error))
    answer = client.handle(event("/v1/hello", codec.encode(Hello())), Context())
    refusal = codec.decode_error(body_of(answer), answer["statusCode"])
    assert refusal.retryable
    assert "secret" not in str(refusal)
    return answer


def test_a_store_that_does_not_answer_is_a_retryable_error(start: Start, log: Log) -> None:
    answer = fail_with(start("client"), EndpointConnectionError(endpoint_url="secret"))
    assert (answer["statusCode"], answer["headers"]["Retry-After"]) == (503, "1")
    (line,) = log()
    assert (line["level"], line["status"], line["error"]) == ("INFO", 503, "unavailable")


def test_an_unexpected_error_is_answered_logged_and_counted(start: Start, log: Log) -> None:
    assert fail_with(start("client"), RuntimeError("secret"))["statusCode"] == 500
    line, figure = log()
    assert (line["level"], line["status"], line["error"]) == ("ERROR", 500, "RuntimeError")
    assert "fail" in line["exception"]
    assert figure["InternalErrors"] == [1.0]


def test_a_function_without_a_token_to_read_starts_without_a_call(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLOUDPAR_WORKER_TOKEN_SECRET")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    answer = start("worker").handle(event("/v1/retrieve_tasks", b"\x80", ""), Context())
    assert answer["statusCode"] == 401
