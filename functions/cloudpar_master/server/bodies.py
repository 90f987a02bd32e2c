"""Reads the bodies of Starlette's requests, and renders replies and errors as Starlette's responses."""

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.services import bodies
from cloudpar_protocol.errors import BadRequest, NotFound
from cloudpar_protocol.limits import BODY_BYTES

from .connections import hold, sent

CLIENT_GONE = 499
"""The HTTP status of an answer for which the client no longer waits."""


async def read_body(request: Request) -> bytes:
    """Read the whole body of a call.

    Raises:
        TooLarge: The body is over the limit; the rest is not read.
        RateLimited: The calls of the account hold too many bytes.
        ClientDisconnect: The client has hung up.
    """
    length = request.headers.get("content-length", "")
    expected = int(length) if length.isdecimal() else BODY_BYTES
    bodies.check_size(expected)
    await sent(request)  # the earlier answer counts as held until the client has read it
    hold(request, expected)
    body = bytearray()  # a list of parts would need many times the bytes of a body that comes in tiny chunks
    async for part in request.stream():
        body += part
        bodies.check_size(len(body))
    if len(body) != expected:
        hold(request, len(body))
    return bytes(body)


def answer(request: Request, body: bytes, reply: Struct) -> Response:
    """Render a reply as the response to a request; `body` is the body of the request.

    Raises:
        RateLimited: The calls of the account hold too many bytes.
    """
    given = bodies.answer(request.headers, reply)
    hold(request, len(body) + len(given.body))
    return Response(given.body, media_type=given.media)


def refusal(request: Request, error: Exception) -> Response:
    """Render an error as a response."""
    status, headers = None, dict[str, str]()
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        kind = NotFound if status == NotFound.status else BadRequest
        error = kind(f"{request.method} {request.url.path}: {error.detail}")
    given = bodies.refusal(request.headers, error)
    return Response(given.body, status or given.status, headers | given.headers, given.media)
