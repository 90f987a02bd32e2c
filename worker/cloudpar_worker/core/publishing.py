"""Divides results of a lease into publications, and publications into requests, within the protocol's limits."""

from collections.abc import Iterator

from cloudpar_protocol.limits import (
    BODY_BYTES,
    BULK_ITEMS,
    INLINE_RESULT_BYTES,
    PUBLICATION_BYTES,
    PUBLICATION_TASKS,
)
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol.worker_messages import Publication

from .lease_record import LeaseRecord

LARGE_BYTES = 64 * 1024 * 1024
"""The most bytes of large results in one publication; they become one blob. A single result may be larger."""
_RESULT_BYTES = 64
"""The most bytes of a result on the wire without its data and texts."""
_REFERENCE_BYTES = 600
"""The most bytes of a reference to a blob, which stands in place of a large result."""
_ALWAYS_FIT = BODY_BYTES // (PUBLICATION_BYTES + 65_536)
"""This many publications always fit into one request, so the agent need not add up their sizes."""


def result_bytes(result: TaskResult) -> int:
    """Return the most bytes that a result can take inside its publication; a large value counts as a reference."""
    size = _RESULT_BYTES
    data = result.data
    if data is not None:
        size += len(data) if len(data) <= INLINE_RESULT_BYTES else _REFERENCE_BYTES
    if result.message or result.traceback or result.stdout or result.stderr or result.input:
        for text in (result.message, result.traceback, result.stdout, result.stderr, result.input):
            size += len(text.encode(errors="replace")) if text else 0
    return size


def split(results: list[TaskResult]) -> Iterator[list[TaskResult]]:
    """Split results into lists that each fit into one publication, in order."""
    part: list[TaskResult] = []
    inline = large = 0
    for result in results:
        size = result_bytes(result)
        blob = len(result.data) if result.data is not None and len(result.data) > INLINE_RESULT_BYTES else 0
        full = len(part) == PUBLICATION_TASKS or inline + size > PUBLICATION_BYTES
        if part and (full or (blob and large and large + blob > LARGE_BYTES)):
            yield part
            part, inline, large = [], 0, 0
        part.append(result)
        inline += size
        large += blob
    if part:
        yield part


def publications(record: LeaseRecord) -> list[Publication]:
    """Turn all pending results of a lease into publications; without results there is one empty publication.

    The last publication closes the lease if no other message about the lease can follow.
    """
    parts = list(split(record.publish_pending())) or [[]]
    # Only the last part may close the lease, because closing deletes the queue message. If an earlier part closed the
    # lease and this worker died before it sent the rest, no other worker would get the tasks of the rest.
    return [_publication(record, part, closes=record.closing and part is parts[-1]) for part in parts]


def _publication(record: LeaseRecord, results: list[TaskResult], *, closes: bool) -> Publication:
    lease = record.lease
    retrieve_us, record.retrieve_us = record.retrieve_us, 0
    publish_us, record.publish_us = record.publish_us, 0
    refused, message = record.refusal if closes and record.refusal else (None, None)
    return Publication(
        **lease.identity(),
        seq=record.next_seq(),
        results=results,
        closes=closes,
        wait_us=lease.wait_us,
        retrieve_us=retrieve_us,
        publish_us=publish_us,
        refused=refused,
        message=message,
    )


def requests(made: list[Publication]) -> Iterator[list[Publication]]:
    """Split publications into lists that each fit into one request, in order."""
    if len(made) <= _ALWAYS_FIT:
        yield made
        return
    part: list[Publication] = []
    size = 0
    for publication in made:
        weight = 1024 + sum([result_bytes(result) for result in publication.results])
        if part and (len(part) == BULK_ITEMS or size + weight > BODY_BYTES - 65_536):
            yield part
            part, size = [], 0
        part.append(publication)
        size += weight
    if part:
        yield part


def unpublished(records: list[LeaseRecord]) -> str:
    """Return a text with the number of unpublished results of each package."""
    packages: dict[str, int] = {}
    for record in records:
        package_id = record.lease.package_id
        packages[package_id] = packages.get(package_id, 0) + record.unpublished
    return ", ".join(f"{results} results of package {package_id}" for package_id, results in packages.items())
