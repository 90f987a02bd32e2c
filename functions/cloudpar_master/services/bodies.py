"""HTTP bodies, independent of the server: tokens, media types, limits, and errors as answers.

These functions look headers up by names in lower case, so a server must pass mappings that find headers by such names.
"""

from collections.abc import Mapping
from math import ceil
from typing import NamedTuple

from msgspec import Struct

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, InternalError, RequestError, TooLarge
from cloudpar_protocol.limits import BODY_BYTES


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    media: str
    body: bytes
    headers: dict[str, str]


def check_size(size: int) -> None:
    """Check the size of a body in bytes.

    Raises:
        TooLarge: The size is over BODY_BYTES.
    """
    if size > BODY_BYTES:
        raise TooLarge(f"a body of over {BODY_BYTES:,} bytes: upload payloads instead (prepare_uploads)")


def bearer(headers: Mapping[str, str]) -> str:
    """Return the token in the header `Authorization: Bearer TOKEN`; "" if there is none.

    >>> bearer({"authorization": "Bearer abc"}), bearer({})
    ('abc', '')
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def sent_media(headers: Mapping[str, str]) -> str:
    """Return the media type of the body; MessagePack if no header names one.

    Raises:
        BadRequest: The media type is neither MessagePack nor JSON.
    """
    media = headers.get("content-type", codec.MSGPACK).partition(";")[0].strip().lower()
    if media not in {codec.MSGPACK, codec.JSON}:
        raise BadRequest(f"a body of the type {media!r}: send Content-Type {codec.MSGPACK} or {codec.JSON}")
    return media


def accepted_media(headers: Mapping[str, str]) -> str:
    """Return the media type for the answer: a type that the request accepts, or else the type of its body.

    If `Accept` names both MessagePack and JSON, or neither `Accept` nor `Content-Type` names one of them, this is
    MessagePack.
    """
    accepted = headers.get("accept", "")
    if codec.MSGPACK in accepted:
        return codec.MSGPACK
    if codec.JSON in accepted or headers.get("content-type", "").startswith(codec.JSON):
        return codec.JSON
    return codec.MSGPACK


def answer(headers: Mapping[str, str], reply: Struct) -> Answer:
    """Render a reply in the media type that the request accepts."""
    media = accepted_media(headers)
    return Answer(200, media, codec.encode(reply, media), {})


def refusal(headers: Mapping[str, str], error: Exception) -> Answer:
    """Render an error in the media type that the request accepts.

    An error that is not a RequestError becomes an InternalError.
    """
    if not isinstance(error, RequestError):
        error = InternalError("the master failed at this request; its log says how. Nothing acknowledged is lost")
    more = {} if error.retry_after_s is None else {"Retry-After": str(max(1, ceil(error.retry_after_s)))}
    media = accepted_media(headers)
    return Answer(error.status, media, codec.encode_error(error, media), more)
