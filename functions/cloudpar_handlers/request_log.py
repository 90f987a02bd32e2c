"""The log of a Lambda function: one line for each invocation, and metrics."""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.metrics.metrics import EphemeralMetrics

SERVICE = "cloudpar"
IDS = 10
"""How many package ids a line names at most. If a request has more of them, the line also says how many there are."""


class RequestLog:
    """The log and the metrics of one Lambda function. Neither ever contains a payload or a token."""

    def __init__(self) -> None:
        service = os.environ.get("POWERTOOLS_SERVICE_NAME", SERVICE)
        self._log = Logger(service=service, location="%(module)s", utc=True, stream=sys.stdout)
        self._namespace = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Cloudpar")
        self._service = service

    def entry(self, kind: str, context: Any) -> "Entry":
        """Start the line of an invocation; `context` is Lambda's context object, which has the request id."""
        return Entry(self, kind, str(getattr(context, "aws_request_id", "")))

    def write(self, kind: str, facts: Mapping[str, Any], error: Exception | None) -> None:
        """Write the line. If there was an unforeseen error (`error` is not None), add its traceback."""
        if error is not None:
            self._log.error(kind, extra=dict(facts), exc_info=error)
        else:
            self._log.info(kind, extra=dict(facts))

    def count(self, figures: Mapping[str, float]) -> None:
        """Write metrics in CloudWatch's embedded metric format. If `figures` is empty, write nothing."""
        if not figures:
            return
        metrics = EphemeralMetrics(namespace=self._namespace, service=self._service)
        for name, value in figures.items():
            metrics.add_metric(name=name, unit=MetricUnit.Count, value=value)
        metrics.flush_metrics()


class Entry:
    """Collects the fields and the metrics of one invocation, and writes them at its end."""

    def __init__(self, log: RequestLog, kind: str, request_id: str) -> None:
        self._log = log
        self._kind = kind
        self._began_at = time.perf_counter()
        self._facts: dict[str, Any] = {"request_id": request_id}
        self._figures: dict[str, float] = {}
        self._failure: Exception | None = None

    def note(self, **facts: Any) -> None:
        """Add fields to the line. A field whose value is None or empty is left out."""
        self._facts |= {name: fact for name, fact in facts.items() if fact not in (None, "", [])}

    def packages(self, package_ids: list[str]) -> None:
        """Record the ids of the packages that the invocation is about."""
        names = list(dict.fromkeys(package_ids))
        self.note(package_ids=names[:IDS], packages=len(names) if len(names) > IDS else None)

    def count(self, name: str, value: float = 1) -> None:
        """Add to a metric. A value of 0 is ignored, so that a metric that stays 0 is not written."""
        if value:
            self._figures[name] = self._figures.get(name, 0) + value

    def fail(self, error: Exception) -> None:
        """Record an unforeseen error. The metric InternalErrors counts it.

        The line gets the class and the traceback of the error. If an invocation has several unforeseen errors, the line
        gets those of the last one.
        """
        self._failure = error
        self.note(error=type(error).__name__)
        self.count("InternalErrors")

    def close(self) -> None:
        """Write the line and the metrics."""
        self.note(duration_ms=round((time.perf_counter() - self._began_at) * 1000, 1))
        self._log.write(self._kind, self._facts, self._failure)
        self._log.count(self._figures)
