"""AWS's bill for one package, and the goals that it is compared with."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from cloudpar.deployment import prices

from .package import Counted, Load

HTTP_USD = 1.00 / 1e6
"""API Gateway's price of one request to an HTTP API. A body counts as one request for every 512 KB."""

WRITE_UNIT_USD = 0.625 / 1e6
PUT_USD, GET_USD = 5.0 / 1e6, 0.4 / 1e6
CALL_S, CALL_GB = 0.03, 0.5
"""The assumed duration and memory of one call of a function."""

SERVICES = ("API Gateway", "Lambda", "SQS", "DynamoDB", "S3", "AutoScaling")
LINES = (*SERVICES, "calls", "read units", "write units", "USD")
ASIDE = ("idle polls", "timer", "set up", "forget")
"""Purposes that do not count as a package's: idle agents, the timer, a pool's first request, and the deletion of
tombstones a day later.
"""

CALLS_OF_ONE, CALLS_OF_MILLION, USD_OF_MILLION, REQUESTS_OF_CHUNK = 30, 5_000, 0.01, 3.0


class Bill:
    """What one package cost, computed from the requests and units that were counted."""

    def __init__(self, load: Load, counted: Counted) -> None:
        self.load = load
        self._counts = counted.counts
        self.seconds = counted.seconds

    def by_purpose(self) -> dict[str, Counter[str]]:
        """Return one line for each purpose of the package, then their sum, then the purposes in `ASIDE`."""
        lines: dict[str, Counter[str]] = {}
        for (purpose, what), number in self._counts.of.items():
            line = lines.setdefault(purpose, Counter())
            service = next((name for name in SERVICES if what.startswith(name)), what)
            line[service] += number
        own = {purpose: line for purpose, line in lines.items() if purpose not in ASIDE}
        package: Counter[str] = sum(own.values(), Counter())
        every = {**own, "package": package, **{purpose: lines[purpose] for purpose in ASIDE if purpose in lines}}
        for line in every.values():
            line["calls"] = sum(line[service] for service in SERVICES)
            line["USD"] = self._usd(line)  # type: ignore[assignment]
        return every

    @staticmethod
    def _usd(line: Counter[str]) -> float:
        function_usd = prices.LAMBDA_REQUEST_USD + CALL_S * CALL_GB * prices.LAMBDA_GB_SECOND_USD
        return (
            line["API Gateway"] * HTTP_USD
            + line["Lambda"] * function_usd
            + line["SQS"] * prices.FIFO_REQUEST_USD
            + line["read units"] * prices.READ_UNIT_USD
            + line["write units"] * WRITE_UNIT_USD
            + line["S3"] * PUT_USD
        )

    @property
    def chunks(self) -> int:
        """Into how many chunks the master cut the package."""
        return self._counts.of["publish", "chunks"]

    @property
    def requests_of_chunk(self) -> float:
        """How many requests the workers sent for each chunk."""
        worker = ("retrieve", "publish", "extend", "give back")
        return sum(self._counts.of[purpose, "API Gateway"] for purpose in worker) / max(1, self.chunks)

    def missed(self) -> Iterator[str]:
        """Yield the goals that the package misses."""
        line = self.by_purpose()["package"]
        if self.load.tasks == 1 and line["calls"] > CALLS_OF_ONE:
            yield f"a package of one task: {line['calls']} calls, at most {CALLS_OF_ONE} are wanted"
        if self.load == Load(1_000_000, 1_000) and line["calls"] > CALLS_OF_MILLION:
            yield f"a million tasks of 1 ms: {line['calls']} calls, at most {CALLS_OF_MILLION} are wanted"
        if self.load == Load(1_000_000, 1_000) and line["USD"] > USD_OF_MILLION:
            yield f"a million tasks of 1 ms: {line['USD']} USD, at most {USD_OF_MILLION} are wanted"
        if self.load.tasks > 1 and self.requests_of_chunk > REQUESTS_OF_CHUNK:
            yield f"{self.load}: {self.requests_of_chunk:.2f} requests a chunk, at most {REQUESTS_OF_CHUNK} are wanted"

    def as_object(self) -> dict[str, Any]:
        lines = self.by_purpose()
        return {
            "tasks": self.load.tasks,
            "task_us": self.load.task_us,
            "simulated_s": self.seconds,
            "chunks": self.chunks,
            "requests_of_chunk": round(self.requests_of_chunk, 3),
            "usd_of_million_tasks": lines["package"]["USD"] / self.load.tasks * 1e6,
            "counts": {purpose: dict(line) for purpose, line in lines.items()},
            "missed": list(self.missed()),
        }
