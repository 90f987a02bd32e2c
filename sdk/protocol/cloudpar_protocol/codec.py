r"""Converts messages to bytes and back: MessagePack for programs, JSON for people.

The media type of a body says which of these two formats it has.

>>> from cloudpar_protocol import codec, routes
>>> message = routes.LIST_WORKERS.request()
>>> codec.encode(message)
b'\x81\xa1v\x01'
>>> codec.decode(codec.encode(message, codec.JSON), routes.LIST_WORKERS.request, codec.JSON) == message
True
"""

from collections.abc import Hashable
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from .errors import REQUEST_ERRORS, BadRequest, InternalError, RateLimited, RequestError, UnsupportedVersion
from .limits import PROTOCOL_VERSION
from .message import Message

T = TypeVar("T")

MSGPACK = "application/msgpack"
JSON = "application/json"

_RETRYABLE_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

_UNKNOWN: dict[int, type[RequestError]] = {429: RateLimited}
"""By HTTP status: the error class for an answer that has no known code. A gateway in front of the master throttles with
429, as the master does."""

_to_msgpack = msgspec.msgpack.Encoder()
_to_json = msgspec.json.Encoder()


class ErrorReply(Message, frozen=True, kw_only=True):
    """The body of every answer of a master to a call, if the status is not 200."""

    code: str
    message: str
    retryable: bool = False
    retry_after_s: float | None = None


@cache
def _decoder(kind: Hashable, media: str) -> msgspec.msgpack.Decoder[Any] | msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind) if media == JSON else msgspec.msgpack.Decoder(kind)


def encode(message: Any, media: str = MSGPACK) -> bytes:
    """Serialize a message; media is MSGPACK or JSON."""
    return _to_json.encode(message) if media == JSON else _to_msgpack.encode(message)


def decode(body: bytes, kind: type[T], media: str = MSGPACK) -> T:
    """Parse and validate a message. Unknown fields are ignored.

    Raises:
        BadRequest: The body is not a valid message. If a field is wrong, the text names it.
        UnsupportedVersion: The message has a newer protocol version.
    """
    try:
        message = cast("T", _decoder(cast("Any", kind), media).decode(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        version = _version(body, media)
        if version > PROTOCOL_VERSION:
            text = f"the request speaks protocol {version}, this side speaks {PROTOCOL_VERSION}: update the older one"
            raise UnsupportedVersion(text) from None
        raise BadRequest(f"not a valid {kind.__name__}: {error}") from None
    if isinstance(message, Message) and message.v > PROTOCOL_VERSION:
        raise UnsupportedVersion(f"protocol {message.v} is newer than {PROTOCOL_VERSION}: update this side")
    return message


def _version(body: bytes, media: str) -> int:
    try:
        version: int = _decoder(Message, media).decode(body).v
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return PROTOCOL_VERSION
    return version


def encode_error(error: RequestError, media: str = MSGPACK) -> bytes:
    """Serialize an error answer."""
    reply = ErrorReply(
        code=error.code, message=str(error), retryable=error.retryable, retry_after_s=error.retry_after_s
    )
    return encode(reply, media)


def explain(body: bytes, status: int, media: str) -> str:
    """Describe a blob store's refusal as text.

    An embedded master is a blob store, too, and sends an ErrorReply. For any other answer, the text quotes the start of
    the body.

    >>> explain(encode_error(BadRequest("too short")), 400, MSGPACK), explain(b"<Error/>", 403, "application/xml")
    ('too short', 'HTTP status 403: <Error/>')
    """
    if media == MSGPACK:
        return str(decode_error(body, status))
    return f"HTTP status {status}: {body[:200].decode(errors='replace')}"


def decode_error(body: bytes, status: int) -> RequestError:
    """Make the exception for an error answer. If the body is not an ErrorReply, the exception quotes the body's start.

    If the body has no code (such as the page of a proxy), or an unknown code (of a newer master), the HTTP status
    decides. 429 gives a RateLimited, any other status after which a retry may help gives an InternalError, and every
    other status gives a plain RequestError.
    """
    unknown = _UNKNOWN.get(status, InternalError if status in _RETRYABLE_STATUS else RequestError)
    try:
        reply = decode(body, ErrorReply)
    except RequestError:
        text = body[:200].decode(errors="replace")
        return unknown(f"HTTP status {status}, not from a Cloud Parallelizer master: {text!r}")
    kind = REQUEST_ERRORS.get(reply.code, unknown)
    return kind(reply.message, reply.retry_after_s)
