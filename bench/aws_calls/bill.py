"""Computes AWS's bill for one package, and compares it with goals. docs/cost-model.md explains the prices."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from cloudpar.deployment import prices

from .package import Counted, Load

HTTP_USD = 1.00 / 1e6
"""API Gateway's price of one request to an HTTP API."""

WRITE_UNIT_USD = 0.625 / 1e6
PUT_USD, GET_USD = 5.0 / 1e6, 0.4 / 1e6
TRACE_USD = 5.0 / 1e6
"""The price of a trace. Traces are off unless the operator wants them, so no sum contains them."""

OUT = "bytes out of AWS"
"""The kind of unit under which the bytes of answers to clients are counted. Workers are inside AWS."""

OUT_GB_USD = 0.09

METRIC_USD = 0.30 / prices.HOURS
"""The price of one of the functions' own metrics for each hour in which a function reports it."""

METRICS = 2
"""How many metrics the functions report while a package without failures runs: PackagesStarted and TasksPublished."""

CALL_S, CALL_GB = 0.05, 1.0
"""The assumed duration of one call of a function, in seconds, and its memory, which infra/lib/services.ts sets."""

LOG_BYTES = 1200
"""How many bytes of logs one request writes: the function's line, Lambda's three and API Gateway's."""

SERVICES = ("API Gateway", "Lambda", "SQS", "DynamoDB", "S3", "AutoScaling")
LINES = (*SERVICES, "calls", "read units", "write units", "USD")
ASIDE = ("idle polls", "timer", "set up", "forget")
"""Purposes that do not count as a package's: idle agents, the timer while no package is due, a pool's first request,
and the deletion of tombstones a day later.
"""

CALLS_OF_ONE, CALLS_OF_MILLION, REQUESTS_OF_CHUNK = 30, 5_000, 5.0
USD_GOALS = {Load(1_000_000, 1_000): 0.005, Load(1_000_000, 1_000_000): 0.05}
"""What packages may cost at most, in USD."""

EXAMPLE = Load(10_000, 10_000_000, agents=4)
"""The package of the worked example in docs/cost-model.md. It runs on c7g.xlarge, whose four cores are four
executors."""

SPOT_PART = 0.4
"""The price of a spot instance as a part of the on-demand price, as the worked example assumes it."""

INSTANCE = "c7g.xlarge"
VOLUME_GIB = 20
CONTROL_PART = 0.03
"""The part of the example's bill that the calls of the master and the workers may cost at most."""


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
            line["USD"] += number * usd_of(what)  # type: ignore[assignment]
            if service == "S3":
                line["S3 gets" if usd_of(what) == GET_USD else "S3 puts"] += number if usd_of(what) else 0
        own = {purpose: line for purpose, line in lines.items() if purpose not in ASIDE}
        package: Counter[str] = sum(own.values(), Counter())
        package["USD"] += self.metrics_usd  # type: ignore[assignment]
        every = {**own, "package": package, **{purpose: lines[purpose] for purpose in ASIDE if purpose in lines}}
        for line in every.values():
            line["calls"] = sum(line[service] for service in SERVICES)
        return every

    @property
    def metrics_usd(self) -> float:
        """The package's part of the price of the metrics, which all packages of an hour share."""
        return self.seconds / 3600 * METRICS * METRIC_USD

    @property
    def usd(self) -> float:
        """The price of all that the package needs besides the instances that run its tasks."""
        return float(self.by_purpose()["package"]["USD"])

    @property
    def instances_usd(self) -> float:
        """The price of spot instances for the executors, with volumes and addresses, while the package runs."""
        on_demand_usd = prices.on_demand_usd(INSTANCE)
        assert on_demand_usd is not None
        around_usd = VOLUME_GIB * prices.VOLUME_GB_USD / prices.HOURS + prices.ADDRESS_HOUR_USD
        return self.load.agents * self.seconds / 3600 * (on_demand_usd * SPOT_PART + around_usd)

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
        goal_usd = USD_GOALS.get(self.load)
        if goal_usd is not None and self.usd > goal_usd:
            yield f"{self.load}: {self.usd:.4f} USD, at most {goal_usd} are wanted"
        if self.load.tasks > 1 and self.requests_of_chunk > REQUESTS_OF_CHUNK:
            yield f"{self.load}: {self.requests_of_chunk:.2f} requests a chunk, at most {REQUESTS_OF_CHUNK} are wanted"
        part = self.usd / (self.usd + self.instances_usd)
        if self.load == EXAMPLE and part > CONTROL_PART:
            yield f"{self.load}: calls are {part:.1%} of the bill, at most {CONTROL_PART:.0%} are wanted"

    def as_object(self) -> dict[str, Any]:
        lines = self.by_purpose()
        return {
            "tasks": self.load.tasks,
            "task_us": self.load.task_us,
            "agents": self.load.agents,
            "simulated_s": self.seconds,
            "chunks": self.chunks,
            "requests_of_chunk": round(self.requests_of_chunk, 3),
            "instances_usd": self.instances_usd,
            "usd_of_million_tasks": self.usd / self.load.tasks * 1e6,
            "counts": {purpose: dict(line) for purpose, line in lines.items()},
            "missed": list(self.missed()),
        }


def usd_of(what: str) -> float:
    """Return the price of one request or unit of this kind."""
    service, _, operation = what.partition(" ")
    if what == "API Gateway":
        return HTTP_USD + LOG_BYTES / 1e9 * prices.LOG_GB_USD
    if what == "Lambda":
        return prices.LAMBDA_REQUEST_USD + CALL_S * CALL_GB * prices.LAMBDA_GB_SECOND_USD
    if service == "S3":
        return GET_USD if operation.startswith(("Get", "Head")) else 0.0 if operation.startswith("Delete") else PUT_USD
    units = {
        "read units": prices.READ_UNIT_USD,
        "write units": WRITE_UNIT_USD,
        OUT: OUT_GB_USD / 1e9,
        "SQS": prices.FIFO_REQUEST_USD,
    }
    return units.get(what, units.get(service, 0.0))
