"""The docstring draws the whole tree of errors, and every error arrives as the same class."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from cloudpar_protocol import codec, errors
from cloudpar_protocol.errors import CloudparError, RequestError
from cloudpar_protocol.payloads import TaskResult

REQUEST_ERRORS = list(errors.REQUEST_ERRORS.values())


def _tree(kind: type[CloudparError], depth: int = 0) -> Iterator[tuple[int, str]]:
    yield depth, kind.__name__
    for child in kind.__subclasses__():
        if getattr(errors, child.__name__, None) is child:
            yield from _tree(child, depth + 1)


def _drawn() -> Iterator[tuple[int, str]]:
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ((?:[│ ] {3})*(?:[├└]── )?)(\w+)(?: {2}|$)", line)
        if match:
            yield len(match[1]) // 4, match[2]


def test_the_drawn_tree_has_every_error() -> None:
    assert list(_drawn()) == list(_tree(CloudparError))


def test_the_drawing_names_status_code_and_retry() -> None:
    for kind in REQUEST_ERRORS:
        line = next(line for line in (errors.__doc__ or "").splitlines() if re.search(rf"── {kind.__name__}\b", line))
        assert f"{kind.status} {kind.code}" in line
        assert ("(retryable)" in line) == kind.retryable


def test_codes_are_unique_and_complete() -> None:
    assert len(REQUEST_ERRORS) == len(RequestError.__subclasses__())
    assert all(400 <= kind.status < 600 for kind in REQUEST_ERRORS)


def test_every_outcome_without_a_value_has_its_error() -> None:
    outcome = next(field.type for field in inspect.type_info(TaskResult).fields if field.name == "outcome")  # type: ignore[attr-defined]
    assert set(errors.OUTCOME_ERRORS) == set(outcome.values) - {"ok"}


@pytest.mark.parametrize("kind", REQUEST_ERRORS, ids=lambda kind: kind.__name__)
@given(message=st.text(st.characters(codec="utf-8")), retry_after_s=st.none() | st.floats(0, 1e9))
def test_an_error_comes_back_as_itself(kind: type[RequestError], message: str, retry_after_s: float | None) -> None:
    sent = kind(message, retry_after_s)
    received = codec.decode_error(codec.encode_error(sent), kind.status)
    assert type(received) is kind
    assert (str(received), received.retry_after_s) == (message, retry_after_s)


def test_an_error_is_also_readable_as_json() -> None:
    reply = codec.decode(
        codec.encode_error(errors.NotFound("no such package"), codec.JSON), codec.ErrorReply, codec.JSON
    )
    assert (reply.code, reply.message, reply.retryable) == ("not_found", "no such package", False)


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (403, False), (302, False), (502, True), (503, True)])
@given(body=st.binary(max_size=300))
def test_a_foreign_answer_is_quoted_and_retried_only_if_its_status_says_so(
    status: int, retryable: bool, body: bytes
) -> None:
    error = codec.decode_error(b"<html>" + body, status)
    assert error.retryable is retryable
    assert f"HTTP status {status}" in str(error)
    assert "<html>" in str(error)


@pytest.mark.parametrize(("status", "retryable"), [(418, False), (503, True)])
def test_a_newer_masters_code_keeps_its_message(status: int, retryable: bool) -> None:
    reply = codec.ErrorReply(code="from_the_future", message="do it so")
    error = codec.decode_error(codec.encode(reply), status)
    assert (str(error), error.retryable) == ("do it so", retryable)
