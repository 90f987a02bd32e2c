"""Where the links in an answer lead: to the address by which its request came, whatever name the master has there."""

import re
from collections.abc import Callable
from contextvars import ContextVar

from starlette.requests import Request

from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE

_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")

_base: ContextVar[str] = ContextVar("base")
"""Of the request that is served. Each request has a task, and so a context, of its own."""


def note(request: Request) -> None:
    """Remember the base of the links in this request's answer.

    A caller that resolves relative links gets them, so that they lead through any proxy. One that has the same files
    gets links to them. An older caller gets its own `Host` back, which leads through a forwarded port.
    """
    host = request.headers.get("host", "")
    wanted = request.headers.get(HEADER)
    if wanted == RELATIVE:
        _base.set("")
    elif wanted == FILES:
        _base.set(FILES)
    elif _HOST.fullmatch(host):
        _base.set(f"http://{host}")


def current(endpoint: str) -> Callable[[], str]:
    """Return a function that brings the beginning of links as it is now; it is `endpoint` without a request."""
    return lambda: _base.get(endpoint)
