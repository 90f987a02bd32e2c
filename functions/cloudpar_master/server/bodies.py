"""Bodies in and out: media types, limits, and errors as answers."""

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, InternalError, RequestError, TooLarge
from cloudpar_protocol.limits import BODY_BYTES

CLIENT_GONE = 499
"""Nobody reads this answer."""


async def read_body(request: Request) -> bytes:
    """The whole body of a call.

    Raises:
        TooLarge: It is over the limit; the rest is not read.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > BODY_BYTES:
            raise TooLarge(f"a body of over {BODY_BYTES:,} bytes: upload payloads instead (prepare_uploads)")
        parts.append(part)
    return b"".join(parts)


def sent_media(request: Request) -> str:
    """The media type of the body.

    Raises:
        BadRequest: It is neither of ours.
    """
    media = request.headers.get("content-type", codec.MSGPACK).partition(";")[0].strip().lower()
    if media not in {codec.MSGPACK, codec.JSON}:
        raise BadRequest(f"a body of the type {media!r}: send Content-Type {codec.MSGPACK} or {codec.JSON}")
    return media


def accepted_media(request: Request) -> str:
    """The media type for the answer: what is accepted, and otherwise what was sent."""
    accepted = request.headers.get("accept", "")
    if codec.MSGPACK in accepted:
        return codec.MSGPACK
    if codec.JSON in accepted or request.headers.get("content-type", "").startswith(codec.JSON):
        return codec.JSON
    return codec.MSGPACK


def answer(request: Request, reply: Struct) -> Response:
    """A reply as a response."""
    media = accepted_media(request)
    return Response(codec.encode(reply, media), media_type=media)


def refusal(request: Request, error: Exception) -> Response:
    """An error as a response; one that nobody foresaw may be retried."""
    status = None
    if isinstance(error, HTTPException):
        status, error = error.status_code, BadRequest(f"{request.method} {request.url.path}: {error.detail}")
    if not isinstance(error, RequestError):
        error = InternalError("the master failed at this request; its log says how. Nothing acknowledged is lost")
    headers = {} if error.retry_after_s is None else {"Retry-After": str(max(1, round(error.retry_after_s)))}
    media = accepted_media(request)
    return Response(codec.encode_error(error, media), status or error.status, headers, media)
