"""SQS, S3 and the Auto Scaling group in memory, as far as the adapters use them."""

import io
from collections import defaultdict, deque
from typing import Any

from .counts import Counts


class Queue:
    """A client of SQS. Messages never become visible again: no worker holds one for longer than its visibility."""

    def __init__(self, counts: Counts, now: Any) -> None:
        self._counts = counts
        self._now = now
        self._waiting: defaultdict[str, deque[dict[str, Any]]] = defaultdict(deque)
        self._groups: set[str] = set()
        self._number = 0

    def send_message_batch(self, *, QueueUrl: str, Entries: Any) -> dict[str, Any]:
        self._counts.add("SQS SendMessageBatch")
        for entry in Entries:
            if entry["MessageDeduplicationId"] not in self._groups:
                self._groups.add(entry["MessageDeduplicationId"])
                sent = {"ApproximateReceiveCount": "1", "SentTimestamp": str(round(self._now() * 1000))}
                self._waiting[QueueUrl].append({"Body": entry["MessageBody"], "Attributes": sent})
        return {}

    def receive_message(self, *, QueueUrl: str, MaxNumberOfMessages: int, **_: Any) -> dict[str, Any]:
        self._counts.add("SQS ReceiveMessage")
        found: list[dict[str, Any]] = []
        waiting = self._waiting[QueueUrl]
        while waiting and len(found) < MaxNumberOfMessages:
            self._number += 1
            # AWS's receipts are as long as this.
            found.append({**waiting.popleft(), "ReceiptHandle": f"{self._number:0>412}"})
        return {"Messages": found}

    def delete_message_batch(self, **_: Any) -> dict[str, Any]:
        self._counts.add("SQS DeleteMessageBatch")
        return {}

    def change_message_visibility_batch(self, **_: Any) -> dict[str, Any]:
        self._counts.add("SQS ChangeMessageVisibilityBatch")
        return {}

    def get_queue_attributes(self, *, QueueUrl: str, **_: Any) -> dict[str, Any]:
        self._counts.add("SQS GetQueueAttributes")
        return {"Attributes": {"ApproximateNumberOfMessages": str(len(self._waiting[QueueUrl]))}}


class Bucket:
    """Stands in for a client of S3. Signing a link sends no request, so it is not counted."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._objects: dict[str, bytes] = {}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> None:
        del Bucket
        self._counts.add("S3 PUT")
        self._objects[Key] = Body

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        del Bucket
        self._counts.add("S3 GET")
        return {"Body": io.BytesIO(self._objects[Key])}

    def generate_presigned_url(self, *_: Any, **__: Any) -> str:
        return "https://bucket.example/object"

    def get_paginator(self, _name: str) -> "Bucket":
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> list[dict[str, Any]]:
        """List objects by prefix; one call returns a thousand."""
        del Bucket
        keys = [{"Key": key} for key in self._objects if key.startswith(Prefix)]
        pages = [{"Contents": keys[first : first + 1000]} for first in range(0, max(1, len(keys)), 1000)]
        for _ in pages:
            self._counts.add("S3 LIST")
        return pages

    def delete_objects(self, *, Bucket: str, Delete: Any) -> dict[str, Any]:
        """Delete objects. AWS counts the call and charges nothing for it."""
        del Bucket
        self._counts.add("S3 DELETE")
        for entry in Delete["Objects"]:
            del self._objects[entry["Key"]]
        return {}


class Group:
    """Stands in for a client of Auto Scaling whose group has a running instance."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts

    def describe_auto_scaling_groups(self, **_: Any) -> dict[str, Any]:
        self._counts.add("AutoScaling")
        instances = [{"LifecycleState": "InService"}]
        return {"AutoScalingGroups": [{"DesiredCapacity": 1, "MaxSize": 4, "Instances": instances}]}
