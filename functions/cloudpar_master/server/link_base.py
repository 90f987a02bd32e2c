"""Chooses how the links in an answer start, so that the caller can follow them, also through a proxy."""

import re
from collections.abc import Callable
from contextvars import ContextVar

from starlette.requests import Request

from cloudpar_protocol.link_urls import FILES, HEADER, RELATIVE

_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")

_base: ContextVar[str] = ContextVar("base")
"""The start of the links for the request under way. Each request has its own asyncio task, and so its own context."""


def note(request: Request) -> None:
    """Choose and remember how the links in the answer to this request start.

    A caller that resolves relative links gets relative links, so that they lead through any proxy. A caller that can
    open the master's files gets links to these files, if a pool has started the master. A caller of an earlier release
    gets links to the `Host` that it named, which lead through a forwarded port. If that `Host` is malformed, this
    caller gets links to the master's own endpoint.
    """
    host = request.headers.get("host", "")
    wanted = request.headers.get(HEADER.lower())
    if wanted == RELATIVE:
        _base.set("")
    elif wanted == FILES:
        _base.set(FILES)
    elif _HOST.fullmatch(host):
        _base.set(f"http://{host}")


def current(endpoint: str, *, files: bool) -> Callable[[], str]:
    """Return a function that returns the start of links: as `note` has set it for the request, else `endpoint`.

    Args:
        endpoint: The master's own address.
        files: Whether callers may get links to files. If not, a caller that requests such links gets relative links.
            The caller may belong to another user, who must not learn where the files are. A link to a file also never
            expires, and does not limit the size of an upload.
    """

    def base() -> str:
        start = _base.get(endpoint)
        return "" if start == FILES and not files else start

    return base
