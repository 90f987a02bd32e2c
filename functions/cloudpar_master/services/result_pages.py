from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_master.core.head import Head
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import PackageStore, Unreadable
from cloudpar_protocol.payloads import TaskResult

EARLIER_KEPT_BYTES = 16_000
"""Releases up to 0.3.0 on AWS delete the results of an acknowledged package at once if its `stored_bytes` are not below
this limit."""


class Results(NamedTuple):
    """The next results of a package, the cursor after them, and whether there are more results after this cursor."""

    results: list[TaskResult]
    cursor: int
    more: bool
    size_bytes: int


def read_results(packages: PackageStore, head: Head, cursor: int, room: int) -> Results:
    """Read the result pages after a cursor: about `room` bytes, but at least one page if there is one.

    If `room` is 0, read no page, and only return whether there are more results.

    Raises:
        Unreadable: The first of these pages is damaged or missing. It is also missing if the package was deleted since
            its head was read. The event Broken, which the caller then folds, changes nothing in a deleted package.
    """
    if head.page <= cursor or not room:
        return Results([], cursor, more=head.page > cursor, size_bytes=0)
    pages = packages.pages(head.package_id, cursor, head.page, room)
    # Without this error, a client would get the state "completed" with some results missing, and acknowledge them.
    if not pages:
        raise Unreadable(f"results of package {head.package_id} are missing: start the work again")
    results = [result for page in pages for result in page.results]
    end = pages[-1].version
    return Results(results, end, more=end < head.page, size_bytes=result_bytes(results))


def reload_at_end(packages: PackageStore, head: Head, cursor: int, page: Results, policy: Policy) -> Head:
    """Read the head of an ended package again after its last results were read. Otherwise, return `head`.

    Another client may acknowledge the package between the reads of its head and of its results. Without this second
    read, the client would get the state "completed" with some results missing, and nothing would say that they are
    missing.
    """
    # The results of a package below `kept_bytes` stay for a day after the package is acknowledged, so they cannot be
    # missing. A second read would cost a request on AWS. During an update, functions of an earlier release run, too.
    kept = head.payload_bytes < policy.kept_bytes and head.life.stored_bytes < EARLIER_KEPT_BYTES
    if kept or page.more or not head.life.ended or cursor >= head.page:
        return head
    return packages.load(head.package_id) or head


RESULT_BYTES, LINK_BYTES = 48, 1_452
"""About how many bytes a result takes in an answer without its value and texts, and how many more if it has a blob."""


def result_bytes(results: Sequence[TaskResult]) -> int:
    """Return about how many bytes results take in an answer, including the links of their blobs.

    Most results have neither texts nor a blob. Their number and their data are therefore counted without a loop,
    because a package may have millions of them.
    """
    size = RESULT_BYTES * len(results) + sum([len(result.data) for result in results if result.data])
    for result in results:
        if result.blob or result.message or result.traceback or result.stdout or result.stderr or result.input:
            texts = (result.message, result.traceback, result.stdout, result.stderr, result.input)
            size += sum(len(text) for text in texts if text) + (LINK_BYTES if result.blob else 0)
    return size
