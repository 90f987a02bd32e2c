"""What the model assumes of AWS: how long calls take, and how many of them AWS permits.

AWS publishes limits, but publishes latencies for few calls only. A latency that AWS does not publish is an assumption.
The model leaves out the time that a function computes for large messages, the limits of time and size of a function,
and the throttles of a deployment (`rateLimit`, `workerRateLimit`).
"""

from typing import Final, NamedTuple

MS: Final = 1_000


class Latency(NamedTuple):
    """How long a call takes, in microseconds, and where the figure comes from."""

    us: int
    source: str


NETWORK: Final = Latency(10 * MS, "assumption: an instance and API Gateway in one region, on a kept connection")
FUNCTION: Final = Latency(12 * MS, "assumption: API Gateway, the start of a warm function and its own computing")
COLD_START: Final = Latency(1_500 * MS, "assumption: a new environment of a Python function of 1 GB with boto3")
READ: Final = Latency(4 * MS, "DynamoDB documents single-digit milliseconds")
WRITE: Final = Latency(6 * MS, "DynamoDB documents single-digit milliseconds")
TRANSACTION: Final = Latency(12 * MS, "assumption: twice a write, as a transaction prepares and then writes")
SEND: Final = Latency(30 * MS, "SQS documents tens to low hundreds of milliseconds for its calls")
RECEIVE: Final = Latency(30 * MS, "the same")
DELETE: Final = Latency(30 * MS, "the same")
OBJECT: Final = Latency(100 * MS, "S3 documents 100 to 200 ms for the first byte of small objects")
PATIENCE: Final = Latency(1_000 * MS, "assumption: how long boto3 repeats a throttled call, with its pauses")
BOOT: Final = Latency(90_000 * MS, "assumption: a spot instance starts, and pulls the image")


class Limit(NamedTuple):
    """A limit of AWS.

    Attributes:
        name: What is limited.
        most: The limit in a large region, before the operator has requested a larger one.
        unit: The unit of `most`.
        raised: What an operator can do if a deployment needs more.
        source: Where AWS documents the limit.
    """

    name: str
    most: float
    unit: str
    raised: str
    source: str


PARTITION_WRITES: Final = 1_000
"""The write units that one partition of DynamoDB permits in a second. All rows of a package are in one partition."""

PARTITION_READS: Final = 3_000

LIMITS: Final = (
    Limit("instances", 32, "vCPUs of spot instances at once", "request a larger spot quota of the EC2 service",
          "EC2, quota L-34B43A08; new accounts have less"),
    Limit("requests", 10_000, "requests a second", "request a larger throttle quota of API Gateway, and set rateLimit",
          "API Gateway, quotas of an account"),
    Limit("functions", 1_000, "concurrent executions", "request a larger concurrency quota of Lambda",
          "Lambda, quotas; new accounts may have 10"),
    Limit("package writes", PARTITION_WRITES, "write units a second of one package",
          "nothing: divide the work into several packages", "DynamoDB, designing partition keys"),
    Limit("package reads", PARTITION_READS, "read units a second of one package",
          "nothing: divide the work into several packages", "DynamoDB, designing partition keys"),
    Limit("table writes", 40_000, "write units a second", "request a larger table quota of DynamoDB",
          "DynamoDB, quotas; an on-demand table starts at 4,000 and doubles"),
    Limit("queue sends", 70_000, "calls a second", "nothing", "SQS, FIFO queues in high-throughput mode"),
    Limit("queue receives", 70_000, "calls a second", "nothing", "SQS, FIFO queues in high-throughput mode"),
)  # fmt: skip
"""The name of each limit is the name under which the model counts its use."""
