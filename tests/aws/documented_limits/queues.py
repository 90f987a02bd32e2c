"""The quotas of SQS: message and batch 1 MiB, batch of 10, ids in a batch 80 characters, other ids 128, 12 hours."""

import re
from collections.abc import Iterator

from .params import MIB, Params

BODY = re.compile("[\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")
ENTRY = re.compile(r"[\w-]{1,80}", re.ASCII)
NAME = re.compile("[!-~]{1,128}")

LARGEST = {"VisibilityTimeout": 43_200, "WaitTimeSeconds": 20, "MaxNumberOfMessages": 10}


def broken(name: str, params: Params) -> Iterator[str]:
    """Yield the limits that a request breaks."""
    entries = params.get("Entries")
    messages = [params] if entries is None else entries
    if entries is not None:
        yield from _batch([each["Id"] for each in entries])
    if sum(len(each.get("MessageBody", "").encode()) for each in messages) > MIB:
        yield "messages of over 1 MiB"
    for each in messages:
        yield from _message(each)
        if name.startswith("SendMessage") and "MessageGroupId" not in each:
            yield "a message without a group, to a FIFO queue"


def _batch(ids: list[str]) -> Iterator[str]:
    if not 1 <= len(ids) <= 10:
        yield f"a batch of {len(ids)}"
    if len(set(ids)) < len(ids):
        yield "an id twice in a batch"
    yield from (f"the id {each!r} in a batch" for each in ids if not ENTRY.fullmatch(each))


def _message(message: Params) -> Iterator[str]:
    if not BODY.fullmatch(message.get("MessageBody", "")):
        yield "a message with characters that SQS refuses"
    for field in ("MessageGroupId", "MessageDeduplicationId", "ReceiveRequestAttemptId"):
        if field in message and not NAME.fullmatch(message[field]):
            yield f"{field} {message[field]!r}"
    for field, most in LARGEST.items():
        if not 0 <= message.get(field, 0) <= most:
            yield f"{field} {message[field]}"
