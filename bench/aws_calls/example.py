"""The worked example of docs/cost-model.md: the bill of one package, line by line."""

from typing import NamedTuple

from cloudpar.deployment import prices

from . import bill as own
from .bill import Bill


class Row(NamedTuple):
    """A line of the example: its name, the calculation, and USD."""

    name: str
    why: str
    usd: float


def rows(bill: Bill) -> list[Row]:
    """Return the lines of a package's bill. Counts have two digits, so that a few requests more change no line."""
    line = bill.by_purpose()["package"]
    hosts, hours = bill.load.agents, bill.seconds / 3600
    on_demand_usd = prices.on_demand_usd(own.INSTANCE)
    assert on_demand_usd is not None
    spot_usd = on_demand_usd * own.SPOT_PART
    requests, queue = _short(line["API Gateway"]), _short(line["SQS"])
    writes, reads = _short(line["write units"]), _short(line["read units"])
    puts, gets = _short(line["S3 puts"]), _short(line["S3 gets"])
    call_usd = own.HTTP_USD + prices.LAMBDA_REQUEST_USD
    around_usd = own.VOLUME_GIB * prices.VOLUME_GB_USD / prices.HOURS + prices.ADDRESS_HOUR_USD
    return [
        Row(
            "Instances",
            f"{hosts} x {hours:.2f} h x {spot_usd:.3f} (spot, {100 - 100 * own.SPOT_PART:g} % below {on_demand_usd})",
            hosts * hours * spot_usd,
        ),
        Row(
            "Volumes and addresses",
            f"{hosts} x {hours:.2f} h x ({own.VOLUME_GIB} x {prices.VOLUME_GB_USD} / {prices.HOURS} + 0.005)",
            hosts * hours * around_usd,
        ),
        Row("HTTP requests", f"{requests:,} x {call_usd * 1e6:.2f} / 1e6", requests * call_usd),
        Row(
            "Functions' duration",
            f"{requests:,} x {own.CALL_S} s x {own.CALL_GB:g} GB x {prices.LAMBDA_GB_SECOND_USD:.10f}",
            requests * own.CALL_S * own.CALL_GB * prices.LAMBDA_GB_SECOND_USD,
        ),
        Row(
            "Tables",
            f"{writes:,} writes x {own.WRITE_UNIT_USD * 1e6:g} / 1e6 + {reads:,} reads x 0.125 / 1e6",
            writes * own.WRITE_UNIT_USD + reads * prices.READ_UNIT_USD,
        ),
        Row("Queue", f"{queue:,} x 0.50 / 1e6", queue * prices.FIFO_REQUEST_USD),
        Row(
            "Logs",
            f"{requests:,} x {own.LOG_BYTES / 1000:g} KB x 0.50",
            requests * own.LOG_BYTES / 1e9 * prices.LOG_GB_USD,
        ),
        Row("Metrics", f"{hours:.2f} h x {own.METRICS} x 0.30 / {prices.HOURS}", bill.metrics_usd),
        Row(
            "Result pages",
            f"{puts:,} PUT x 5.00 / 1e6 + {gets:,} GET x 0.40 / 1e6",
            puts * own.PUT_USD + gets * own.GET_USD,
        ),
    ]


def shown(bill: Bill) -> list[list[str]]:
    """Return the table of the page. The first two lines are rounded to cents, the others to hundredths of a cent."""
    every = rows(bill)
    cells = [[row.name, row.why, f"{row.usd:.{2 if number < 2 else 4}f}"] for number, row in enumerate(every)]
    total = sum(float(usd) for _, _, usd in cells)
    return [*cells, ["Together", "", f"{total:.2f}"]]


def _short(number: float) -> int:
    """Round a count to two digits.

    >>> _short(1_467), _short(23)
    (1500, 23)
    """
    return int(float(f"{number:.2g}"))
