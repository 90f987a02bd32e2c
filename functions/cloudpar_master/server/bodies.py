"""Reads and makes bodies for Starlette."""

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.services import bodies
from cloudpar_protocol.errors import BadRequest, NotFound

CLIENT_GONE = 499
"""Status of an answer that the client no longer waits for."""


async def read_body(request: Request) -> bytes:
    """Read the whole body of a call.

    Raises:
        TooLarge: It is over the limit; the rest is not read.
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
    """Render an error as a response. A coroutine, since Starlette would call a function in a thread."""
    status, headers = None, dict[str, str]()
    if isinstance(error, HTTPException):
        status, headers = error.status_code, dict(error.headers or {})
        kind = NotFound if status == NotFound.status else BadRequest
        error = kind(f"{request.method} {request.url.path}: {error.detail}")
    given = bodies.refusal(request.headers, error)
    return Response(given.body, status or given.status, headers | given.headers, given.media)
