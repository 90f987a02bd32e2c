"""Whether this machine's clock and a master's agree."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from .finding import Finding

SKEW_S = 30.0
"""How far the clocks may differ: links to payloads are signed for longer than they need by so much."""

_ANSWER_S = 5.0


def date_of(endpoint: str) -> str | None:
    """What a master's answer says of the time, whatever it answers; None: nothing.

    Raises:
        OSError: Nothing answers there.
        http.client.HTTPException: What answers there is no HTTP server.
    """
    opener = urllib.request.build_opener()  # urlopen would keep the proxies of its first call
    try:
        with opener.open(endpoint, timeout=_ANSWER_S) as answer:
            date: str | None = answer.headers.get("Date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("Date")
        error.close()
    return date


def check_clock(endpoint: str) -> Iterator[Finding]:
    """Compare them; nothing is found where the master does not answer, or does not say what time it is."""
    before = time.time()
    try:
        date = date_of(endpoint)
    except (OSError, http.client.HTTPException):
        return
    if date is None:
        return
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        detail = f"the answer of {endpoint} has no time that can be read, but {date!r}: see what changes it on the way"
        yield Finding("clock", "missing", detail)
        return
    skew_s = max(before - theirs - 1.0, theirs - time.time(), 0.0)  # a Date has whole seconds
    fine = skew_s <= SKEW_S
    yield Finding("clock", "ok" if fine else "bad", f"{skew_s:.0f} s from the master's" + ("" if fine else ": set it"))
