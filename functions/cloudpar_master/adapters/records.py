"""Reads the records of packages, for all adapters, and handles damaged records."""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from cloudpar_master.core.head import Head, Spec, stored
from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import Unreadable
from cloudpar_protocol.payloads import TaskResult

REPEAT_S: Final = 3600.0
"""The log names a damaged record at most once in this many seconds, however often the record is read."""

KNOWN: Final = 1_000
"""For how many damaged records a store remembers when it logged them last."""

DECODED: Final = 64
"""How many heads a store remembers in their decoded form. A request reads the head of a package several times, and the
head of a package on a large fleet takes milliseconds to decode."""

LOST: Final = "package %s: its %s cannot be read (%s); it counts as failed, and all others go on"

_specs = msgspec.msgpack.Decoder(Spec)
_results = msgspec.msgpack.Decoder(list[TaskResult])

log = logging.getLogger("cloudpar_master")


class HeadRow(NamedTuple):
    """A stored head, with the facts about its package that the store knows without decoding the head."""

    package_id: str
    account_id: str
    started_at: float
    version: int
    head: bytes


class Records:
    """Decodes the heads, specs and result pages of one store.

    Args:
        unpack: Converts a stored record to MessagePack. Raises ValueError if the record is damaged.
    """

    def __init__(self, unpack: Callable[[bytes], bytes] = bytes) -> None:
        self._unpack = unpack
        self._logged = Recent[tuple[str, str], float](KNOWN)
        self._decoded = Recent[str, tuple[bytes, Head]](DECODED)
        """By package id: a stored head and its decoded form. No fold changes this form: a fold works on a copy."""

    def head(self, row: HeadRow) -> Head:
        """Decode a head.

        For a damaged head return `Head.stand_in`, so that one damaged head does not make a call for many packages
        fail.
        """
        body, head = self._decoded.get(row.package_id, (b"", None))
        if head is not None and body == row.head:
            return head
        try:
            head = stored.decode(self._unpack(row.head))
        except ValueError as error:
            text = self._damaged(row.package_id, "head", error)
            return Head.stand_in(row.package_id, row.account_id, row.started_at, row.version, text)
        self.remember(row.head, head)
        return head

    def remember(self, body: bytes, head: Head) -> None:
        """Remember the decoded form of a head that is stored as `body`."""
        self._decoded[head.package_id] = body, head

    def spec(self, package_id: str, body: bytes) -> Spec:
        """Decode a spec.

        Raises:
            Unreadable: The record is damaged.
        """
        try:
            return _specs.decode(self._unpack(body))
        except ValueError as error:
            raise Unreadable(self._damaged(package_id, "spec", error)) from None

    def results(self, package_id: str, version: int, page: bytes) -> tuple[int, list[TaskResult]]:
        """Decode the result page of a version of the head. Return its uncompressed size in bytes, and its results.

        Raises:
            Unreadable: The record is damaged.
        """
        try:
            body = self._unpack(page)
            return len(body), _results.decode(body)
        except ValueError as error:
            raise Unreadable(self._damaged(package_id, f"result page {version}", error)) from None

    def _damaged(self, package_id: str, record: str, error: ValueError) -> str:
        """Log that a record is damaged, and return the error message for the owner of the record's package."""
        now = time.monotonic()
        if now - self._logged.get((package_id, record), -REPEAT_S) >= REPEAT_S:
            self._logged[package_id, record] = now
            log.error(LOST, package_id, record, error)
        return f"the master's {record} of package {package_id} is damaged ({error}): start the work again"
