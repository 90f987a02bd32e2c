"""Reads the bodies of Starlette's requests, and renders replies and errors as Starlette's responses."""

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.services import bodies
from cloudpar_protocol.errors import BadRequest, NotFound

CLIENT_GONE = 499
"""The HTTP status of an answer for which the client no longer waits."""


async def read_body(request: Request) -> bytes:
    """Read the whole body of a call.

    Raises:
        TooLarge: The body is over the limit; the rest is not read.
        ClientDisconnect: The client has hung up.
    """
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        bodies.check_size(size)
        parts.append(part)
    return b"".join(parts)


def answer(request: Request, reply: Struct) -> Response:
    """Render a reply as a response."""
    given = bodies.answer(request.headers, reply)
    return Response(given.body, media_type=given.media)


async def refusal(request: Request, error: Exception) -> Response:
    """Render an error as a response.

    This is a coroutine, because Starlette would call a plain function in another thread.
    """
    status, headers = None, dict[str, str]()
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        kind = NotFound if status == NotFound.status else BadRequest
        error = kind(f"{request.method} {request.url.path}: {error.detail}")
    given = bodies.refusal(request.headers, error)
    return Response(given.body, status or given.status, headers | given.headers, given.media)
