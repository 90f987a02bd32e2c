"""Where the links in an answer lead: to the address by which its request came, which may be a proxy's."""

import re
from collections.abc import Callable
from contextvars import ContextVar

from starlette.requests import Request

from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE

_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")

_base: ContextVar[str] = ContextVar("base")
"""The base for the request that is being served. Each request has a task, and so a context, of its own."""


def note(request: Request) -> None:
    """Remember the base of the links in this request's answer.

    A caller that resolves relative links gets such links, so that they lead through any proxy. A caller that can open
    the master's files gets links to these files. An older caller gets links to the `Host` that it named, which lead
    through a forwarded port.
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
    """Return a function that returns the base of links for the current request, and `endpoint` outside of one."""
    return lambda: _base.get(endpoint)
