"""The Lambda function that reads the dead-letter queue. SQS moves a message to this queue after too many deliveries."""

from collections.abc import Mapping
from typing import Any

from cloudpar_master.adapters.aws.backend import from_environment
from cloudpar_master.ports import LARGEST_RECEIVES, Message
from cloudpar_master.services.timer import Timer

from .request_log import RequestLog

_timer = Timer(from_environment(worker_token=False))
_log = RequestLog()


def handle(event: Mapping[str, Any], context: Any) -> dict[str, list[dict[str, str]]]:
    """Report each lost chunk to its package.

    The answer names the messages that could not be handled. Lambda delivers these messages again, and deletes all
    others.
    """
    entry = _log.entry("lost", context)
    failures: list[dict[str, str]] = []
    package_ids: list[str] = []
    records = event.get("Records", [])
    for record in records:
        try:
            package_id = _timer.lost(Message(record["body"], record["receiptHandle"], LARGEST_RECEIVES, 0))
            package_ids += [package_id] if package_id else []
        except Exception as error:  # noqa: BLE001 - one chunk that fails must not fail the others of its batch
            failures.append({"itemIdentifier": record["messageId"]})
            entry.fail(error)
    entry.packages(package_ids)
    entry.note(chunks=len(records), failed=len(failures))
    entry.count("ChunksLost", len(records) - len(failures))
    entry.close()
    return {"batchItemFailures": failures}
