"""Counts the requests of AWS's clients at the point where botocore sends them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .counts import Counts
from .units import StoredRow, read_units, stored, write_units, written


@contextmanager
def metered(counts: Counts, **clients: Any) -> Iterator[None]:
    """Count what clients send, each under the name of its service: `metered(counts, SQS=client)`."""
    meters = [(client.meta.events, _Meter(counts, service)) for service, client in clients.items()]
    for events, meter in meters:
        events.register("before-parameter-build", meter.before)
        events.register("after-call", meter.after)
    try:
        yield
    finally:
        for events, meter in meters:
            events.unregister("before-parameter-build", meter.before)
            events.unregister("after-call", meter.after)


class _Meter:
    def __init__(self, counts: Counts, service: str) -> None:
        self._counts = counts
        self._service = service
        self._asked: dict[str, Any] = {}
        self._before: list[StoredRow] = []

    def before(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        self._asked = params
        if self._service == "DynamoDB":
            self._before = [stored(*row) for row in written(model.name, params)]

    def after(self, model: Any, parsed: dict[str, Any], **_: Any) -> None:
        self._counts.add(f"{self._service} {model.name}")
        if self._service == "DynamoDB":
            if self._before:
                self._counts.add("write units", write_units(model.name, self._asked, self._before))
            else:
                self._counts.add("read units", read_units(model.name, self._asked, parsed))
