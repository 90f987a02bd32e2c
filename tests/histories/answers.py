"""Answers: each error is in the table of docs/protocol.md."""

from collections.abc import Iterator
from typing import Final

from histories.books import Books, Violation

RETRYABLE: Final = {429, 500, 503}
CODES: Final = {
    "bad_request": 400, "unsupported_version": 400, "invalid_token": 401, "quota_exhausted": 402, "forbidden": 403,
    "not_found": 404, "idempotency_conflict": 409, "gone": 410, "too_large": 413, "rate_limited": 429, "internal": 500,
    "unavailable": 503,
}  # fmt: skip


def documented(books: Books) -> Iterator[Violation]:
    """Each error has a code of the table, with its status, and says rightly whether it can be retried."""
    for call in books.calls:
        if call.status is None or call.ok:
            continue
        error = call.reply if isinstance(call.reply, dict) else {}
        code, retryable = error.get("code"), error.get("retryable", False)
        if CODES.get(str(code)) != call.status or retryable != (call.status in RETRYABLE):
            yield Violation("documented", f"status {call.status} with code {code}", (call,))


RULES = [documented]
