"""Compares this machine's clock with a master's."""

import http.client
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime

from .finding import Finding

SKEW_S = 30.0
"""How much the clocks may differ, in seconds, before the check reports it."""

_ANSWER_S = 5.0


def date_of(endpoint: str) -> str | None:
    """Return the Date header of the master's answer, which may be an error; None if the answer has no such header.

    Raises:
        OSError: No program answers at this address within some seconds.
        http.client.HTTPException: The program that answers is not an HTTP server.
    """
    opener = urllib.request.build_opener()  # urlopen keeps the proxy settings of its first call
    try:
        with opener.open(endpoint, timeout=_ANSWER_S) as answer:
            date: str | None = answer.headers.get("Date")
    except urllib.error.HTTPError as error:
        date = error.headers.get("Date")
        error.close()
    return date


def check_clock(endpoint: str) -> Iterator[Finding]:
    """Compare the clocks. Yields nothing if the master does not answer, or its answer has no date."""
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
