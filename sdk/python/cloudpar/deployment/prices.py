"""Calculates the costs of a deployment: at rest per month (line by line, without free tiers), and per hour.

List prices of us-east-1 as of 2025; other regions differ by up to a third. docs/cost-model.md explains every line.

A deployment with alarms costs at most 1.00 USD a month at rest:

>>> round(total(idle(Shape(alarm_metrics=4))), 2)
0.94
>>> [line.name for line in idle(Shape(dashboards=1)) if line.option]
['Dashboard']
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

HOURS = 730
"""Hours per month, as AWS counts them."""

MINUTES = HOURS * 60

ALARM_METRIC_USD = 0.10
DASHBOARD_USD = 3.00
SECRET_USD = 0.40
KEY_USD = 1.00
NAT_GATEWAY_USD = 0.045 * HOURS
LAMBDA_REQUEST_USD = 0.20 / 1e6
LAMBDA_GB_SECOND_USD = 0.0000133334
"""The price of a GB second of Lambda on arm64."""

FIFO_REQUEST_USD = 0.50 / 1e6
READ_UNIT_USD = 0.125 / 1e6
TABLE_GB_USD = 0.25
RECOVERY_GB_USD = 0.20
LOG_GB_USD = 0.50
"""The price of sending a GB of logs to AWS. The price of keeping logs is left out: it is 0.03 per GB and month, and AWS
compresses logs to about a tenth.
"""

BUCKET_GB_USD = 0.023
IMAGE_GB_USD = 0.10
VOLUME_GB_USD = 0.08
ADDRESS_HOUR_USD = 0.005

TICK_S = 0.07
"""The duration of a timer call that finds nothing to do, in seconds. The call queries four shards of an index, and
looks for packages at work in another index. It also reads the fleet's row, looks into the dead-letter queue, and reads
the size of the fleet's group. Reading this size costs nothing.
"""

TICK_READ_UNITS = 5 * 0.5 + 1
TICK_LOG_BYTES = 800
"""The size of the log of a timer call, in bytes: three lines by Lambda and one by the function."""

POLLERS = 5
POLL_S = 20
"""The length of a long poll, in seconds. For each queue that Lambda polls, Lambda runs POLLERS long polls at a time,
even while the queue is empty.
"""

IMAGES_GB = 0.5
"""The size of two compressed images of the worker, in GB."""

CODE_GB = 0.03
TABLES_GB = 0.01

ON_DEMAND_USD = {
    "c8g": 0.07976, "c7g": 0.0725, "c6g": 0.068, "m8g": 0.08976, "m7g": 0.0816, "m6g": 0.077,
    "c7i": 0.08925, "c7a": 0.10264, "c6i": 0.085, "c6a": 0.0765, "m7i": 0.1008, "m7a": 0.11592,
    "m6i": 0.096, "m6a": 0.0864, "c7i-flex": 0.08479, "m7i-flex": 0.09576,
}  # fmt: skip
"""The on-demand price of size `large` in USD per hour, by the families of infra/lib/environments.ts."""

VCPUS = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32}


class Shape(msgspec.Struct, frozen=True):
    """The parts of a deployment that cost money at rest. The defaults are the parts that infra/ makes without settings.

    Attributes:
        alarm_metrics: The number of metrics that the alarms read; an alarm on a formula reads several.
        dashboards: The number of dashboards; they are an option.
        secrets: The number of secrets; one is the workers' token.
        keys: The number of customer-managed KMS keys.
        nat_gateways: The number of NAT gateways; infra/ makes none.
        timers: The number of rules that call a function every minute.
        timer_mb: The memory of the function that a timer calls, in MB.
        queue_sources: The number of queues that Lambda polls by itself: one in a stack of release 0.3.0 or earlier.
        recovery: Whether the tables have point-in-time recovery.
    """

    alarm_metrics: int = 0
    dashboards: int = 0
    secrets: int = 1
    keys: int = 0
    nat_gateways: int = 0
    timers: int = 1
    timer_mb: int = 512
    queue_sources: int = 0
    recovery: bool = False


class Cost(NamedTuple):
    """A cost of a deployment: its name, its calculation, and USD per month. The total does not include options."""

    name: str
    why: str
    usd: float
    option: bool = False


def idle(shape: Shape) -> list[Cost]:
    """Calculate the costs of a deployment per month while no worker runs, line by line."""
    ticks = shape.timers * MINUTES
    polls = shape.queue_sources * POLLERS * MINUTES * 60 / POLL_S
    lines = [
        Cost("Alarms", f"{shape.alarm_metrics} metrics x {ALARM_METRIC_USD}", shape.alarm_metrics * ALARM_METRIC_USD),
        Cost("Secrets", f"{shape.secrets} x {SECRET_USD}", shape.secrets * SECRET_USD),
        Cost("Timer, calls", f"{ticks:,} a month", ticks * LAMBDA_REQUEST_USD),
        Cost(
            "Timer, duration", f"{ticks:,} x {TICK_S} s x {shape.timer_mb} MB",
            ticks * TICK_S * shape.timer_mb / 1024 * LAMBDA_GB_SECOND_USD,
        ),
        Cost("Timer, reads", f"{ticks:,} x {TICK_READ_UNITS:g} units", ticks * TICK_READ_UNITS * READ_UNIT_USD),
        Cost("Timer, dead letters", f"{ticks:,} requests", ticks * FIFO_REQUEST_USD),
        Cost("Timer, logs", f"{ticks:,} x {TICK_LOG_BYTES} bytes", ticks * TICK_LOG_BYTES / 1e9 * LOG_GB_USD),
        Cost("Timer, schedule", "rules on AWS's own bus are free", 0.0),
        Cost("Tables", f"{TABLES_GB} GB", TABLES_GB * (TABLE_GB_USD + RECOVERY_GB_USD * shape.recovery)),
        Cost("Worker images", f"{IMAGES_GB} GB", IMAGES_GB * IMAGE_GB_USD),
        Cost("Functions' code", f"{CODE_GB} GB in the CDK's bucket", CODE_GB * BUCKET_GB_USD),
        Cost("API, queues, payloads", "by use only", 0.0),
        Cost("Fleet", "no instance, no NAT gateway", shape.nat_gateways * NAT_GATEWAY_USD),
    ]  # fmt: skip
    if shape.queue_sources:
        lines.append(Cost("Polling of queues", f"{polls:,.0f} requests", polls * FIFO_REQUEST_USD))
    if shape.keys:
        lines.append(Cost("KMS keys", f"{shape.keys} x {KEY_USD}", shape.keys * KEY_USD))
    if shape.dashboards:
        lines.append(
            Cost("Dashboard", f"{shape.dashboards} x {DASHBOARD_USD}", shape.dashboards * DASHBOARD_USD, option=True)
        )
    return lines


def total(lines: Iterable[Cost]) -> float:
    """Return the total in USD per month, without options."""
    return sum(line.usd for line in lines if not line.option)


class Hour(msgspec.Struct, frozen=True, kw_only=True):
    """The current cost of a deployment in USD per hour.

    `unknown` is the number of instances whose price is not known. `instances` leaves out these instances; `volumes` and
    `addresses` include them.
    """

    instances: float
    volumes: float
    addresses: float
    idle: float
    unknown: int = 0

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return self.instances + self.volumes + self.addresses + self.idle


def hour(instance_usd: Sequence[float | None], idle_month_usd: float, volume_gib: int, *, public: bool = True) -> Hour:
    """Calculate the cost of a deployment per hour.

    Args:
        instance_usd: The price of each instance per hour; None if unknown.
        idle_month_usd: The cost of the deployment per month at rest.
        volume_gib: The volume of each instance, in GiB.
        public: Whether each instance has a public address.

    >>> hour([0.03, 0.03], 2.0, 20).total
    0.07712328767123287
    """
    count = len(instance_usd)
    return Hour(
        instances=sum(price for price in instance_usd if price is not None),
        volumes=count * volume_gib * VOLUME_GB_USD / HOURS,
        addresses=count * ADDRESS_HOUR_USD * public,
        idle=idle_month_usd / HOURS,
        unknown=sum(price is None for price in instance_usd),
    )


def on_demand_usd(instance_type: str) -> float | None:
    """Return the list price of one of the fleet's instance types, in USD per hour; None for other types.

    >>> on_demand_usd("c7g.xlarge"), on_demand_usd("t3.large")
    (0.145, None)
    """
    family, count = instance_type.partition(".")[0], vcpus(instance_type)
    if family not in ON_DEMAND_USD or not count:
        return None
    return ON_DEMAND_USD[family] * count / VCPUS["large"]


def vcpus(instance_type: str) -> int:
    """Return the number of vCPUs, and so of executors, of one of the fleet's instance types; 0 for other sizes.

    >>> vcpus("c7g.xlarge"), vcpus("t3.micro")
    (4, 0)
    """
    return VCPUS.get(instance_type.partition(".")[2], 0)
