"""The routes, from bytes to bytes."""

import json
import sqlite3

import msgspec
import pytest

from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import Hello, HelloReply
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.version import __version__
from support.asgi import Answer, Exchange

from .served import Served, decoded, error

USER = {"authorization": "Bearer user"}
HELLO = codec.encode(Hello())


def hello(served: Served, body: bytes = HELLO, **headers: str) -> Answer:
    return served.send("POST", "/v1/hello", body, USER | {name.replace("_", "-"): v for name, v in headers.items()})


@pytest.mark.parametrize(
    ("sent", "accepted", "answered"),
    [
        (codec.MSGPACK, codec.MSGPACK, codec.MSGPACK),
        (codec.MSGPACK, codec.JSON, codec.JSON),
        (codec.MSGPACK, "*/*", codec.MSGPACK),
        (codec.JSON, "*/*", codec.JSON),
        (codec.JSON, codec.MSGPACK, codec.MSGPACK),
        (codec.JSON, "", codec.JSON),
        ("", "", codec.MSGPACK),
    ],
)
def test_media_are_negotiated(served: Served, sent: str, accepted: str, answered: str) -> None:
    headers = {name: value for name, value in (("content_type", sent), ("accept", accepted)) if value}
    answer = hello(served, codec.encode(Hello(), sent or codec.MSGPACK), **headers)
    assert answer.status == 200
    assert decoded(answer, HelloReply, answered).role == "user"
    refused = hello(served, b"\xc1", **headers)
    assert error(refused, answered).code == "bad_request"


def test_json_as_curl_sends_it_is_answered_in_json(served: Served) -> None:
    answer = hello(served, b"{}", content_type="application/json; charset=utf-8", accept="*/*", user_agent="curl/8")
    assert answer.status == 200
    reply = json.loads(answer.body)
    assert (reply["release"], reply["name"], reply["spent_us"]) == (__version__, "default", 0)


def test_another_media_type_is_refused(served: Served) -> None:
    answer = hello(served, b"v=1", content_type="application/x-www-form-urlencoded")
    assert answer.status == 400
    assert "application/json" in error(answer).message


def test_an_unknown_field_is_ignored_and_a_wrong_one_is_named(served: Served) -> None:
    assert hello(served, msgspec.msgpack.encode({"v": 1, "new": "field"})).status == 200
    answer = hello(served, msgspec.msgpack.encode({"v": "one"}))
    assert answer.status == 400
    assert "$.v" in error(answer).message


@pytest.mark.parametrize("body", [b"", b"\x81", b"\xc1" * 100, b"\x91" * 100_000, b"null"])
def test_a_body_that_is_no_message_is_refused(served: Served, body: bytes) -> None:
    assert hello(served, body).status == 400
    assert hello(served, body, content_type=codec.JSON).status == 400


def test_the_largest_body_may_come_in_parts(served: Served) -> None:
    body = msgspec.msgpack.encode({"padding": b"x" * (BODY_BYTES - 14)})
    assert len(body) == BODY_BYTES
    parts = [body[at : at + 100_000] for at in range(0, len(body), 100_000)]
    assert served.send("POST", "/v1/hello", parts, USER).status == 200


def test_a_body_over_the_limit_is_refused_before_it_has_arrived(served: Served) -> None:
    parts = [b"x" * 1_000_000] * 1000
    answer = served.send("POST", "/v1/hello", parts, USER)
    assert answer.status == 413
    assert error(answer).code == "too_large"


@pytest.mark.parametrize("path", ["/v1/unknown", "/", "/v1", "/v1/", "/v1/hello/", "/v1/hello/more", "/v2/hello", "/é"])
def test_an_unknown_route_is_not_found(served: Served, path: str) -> None:
    answer = served.send("POST", path.replace("é", "%C3%A9"), HELLO, USER)
    assert (answer.status, error(answer).code) == (404, "not_found")


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "BREW"])
def test_a_method_other_than_post_is_refused(served: Served, method: str) -> None:
    answer = served.send(method, "/v1/hello", HELLO, USER)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"
    assert error(answer).code == "bad_request"


@pytest.mark.parametrize("given", ["", "Bearer", "Bearer ", "Bearer unknown", "Basic user", "user", "Bearer \xff"])
def test_a_missing_or_unknown_token_is_refused(served: Served, given: str) -> None:
    answer = served.send("POST", routes.HELLO.path, b"", {"authorization": given})
    assert (answer.status, error(answer).code) == (401, "invalid_token")


@pytest.mark.parametrize(("more", "status"), [(b"Bearer user", 401), (b"Bearer unknown", 200)])
def test_the_first_value_of_a_repeated_header_counts(served: Served, more: bytes, status: int) -> None:
    first = "unknown" if status == 401 else "user"
    exchange = Exchange("POST", "/v1/hello", HELLO, {"authorization": f"Bearer {first}"})
    exchange.scope["headers"].append((b"authorization", more))
    assert served.run(exchange).status == status


@pytest.mark.parametrize("given", ["Bearer user", "bearer user", "BEARER   user  "])
def test_a_token_is_read_in_every_common_spelling_of_its_header(served: Served, given: str) -> None:
    assert served.send("POST", "/v1/hello", HELLO, {"authorization": given}).status == 200


def test_a_fault_of_the_master_may_be_retried_and_is_raised_for_the_log(served: Served) -> None:
    """Uvicorn, which runs the application, logs what it raises after its answer."""
    served.assembly.database.execute("ALTER TABLE accounts RENAME TO gone")
    way = served.exchange("user", routes.HELLO, Hello())
    with pytest.raises(sqlite3.OperationalError, match="accounts"):
        served.run(way)
    answer = way.answer()
    assert answer.status == 500
    reply = error(answer)
    assert (reply.code, reply.retryable) == ("internal", True)
    assert "accounts" not in reply.message
