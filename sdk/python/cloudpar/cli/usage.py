"""`cloudpar usage`: what each account has used on each day, and what that may have cost."""

import csv
import sys
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Unpack

import click
import msgspec
from rich.table import Table

from cloudpar.deployment.administration import Administration
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import ListAccounts, ListUsage, ListUsageReply, Usage
from cloudpar_protocol.errors import CloudparError, NotFound

from . import spans
from .access import json_option
from .master import Master, Operator, as_operator, of_operator
from .presentation import console, frameless, print_json, printable, words

KEPT_DAYS = 60
"""For how many days a master keeps charges."""

DAYS = 30


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one account has used on one day.

    Attributes:
        day: The day (UTC) on which the packages were settled, "2026-11-24".
        account: The name of the account; its id if the master does not list the account.
        packages: The number of settled packages.
        compute_s: Their compute time, in seconds.
        usd: The estimated cost; None if the price of an executor is not known.
    """

    day: str
    account_id: str
    account: str
    packages: int
    compute_s: float
    usd: float | None


class Report(msgspec.Struct, frozen=True):
    """The object that --json prints. `executor_usd` is the price of an executor per hour that the estimate uses."""

    since: str
    executor_usd: float | None
    usage: list[Line]


@click.command()
@click.option(
    "--days", type=click.IntRange(1, KEPT_DAYS), default=DAYS, show_default=True, help="How many days, with today."
)
@click.option(
    "--executor-usd", type=click.FloatRange(min=0),
    help="The price of an executor per hour, in USD.  [default: with --stack, from AWS's current spot prices]",
)  # fmt: skip
@click.option("--csv", "as_csv", is_flag=True, help="Print lines of comma-separated values instead of a table.")
@as_operator
@json_option
def usage(*, days: int, executor_usd: float | None, as_csv: bool, as_json: bool, **operator: Unpack[Operator]) -> None:
    """Show the compute time and the estimated cost of each account and day (needs the admin token, or --stack).

    A package counts on the day (UTC) on which it ended and its account was charged. A master knows the last 60 days.
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json are two forms of the same output: give one of them")
    master = of_operator(operator)
    since = (datetime.now(UTC).date() - timedelta(days=days - 1)).isoformat()
    if executor_usd is None and isinstance(master, Administration):
        executor_usd = master.executor_usd()
    report = Report(since, executor_usd, _lines(master, since, executor_usd))
    if as_json:
        print_json(report)
    elif as_csv:
        _write_csv(report.usage)
    else:
        _show(report)


def ask(master: Master, since: str) -> list[Usage]:
    """Ask the master for all charges of the days from `since` on, one entry for each account and day, oldest first.

    Raises:
        CloudparError: The master's release cannot list charges, or the master refuses the request or does not answer.
    """
    sums: dict[tuple[str, str], Usage] = {}
    cursor: str | None = None
    while True:
        part = _part(master, ListUsage(since=since, cursor=cursor))
        for each in part.usage:
            before = sums.get((each.day, each.account_id))
            sums[each.day, each.account_id] = each if before is None else _sum(before, each)
        cursor = part.cursor
        if cursor is None:
            return [sums[key] for key in sorted(sums)]


def _part(master: Master, request: ListUsage) -> ListUsageReply:
    try:
        found: ListUsageReply = master.call(routes.LIST_USAGE, request)
    except NotFound:
        raise CloudparError(
            f"the master at {master.endpoint} is of an earlier release, which does not add up charges by day: update "
            "it, by starting it with this release or by `cloudpar deploy`"
        ) from None
    return found


def _sum(one: Usage, other: Usage) -> Usage:
    return msgspec.structs.replace(
        one, charged_us=one.charged_us + other.charged_us, packages=one.packages + other.packages
    )


def _lines(master: Master, since: str, executor_usd: float | None) -> list[Line]:
    names = {each.account_id: each.name for each in master.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts}
    return [
        Line(
            day=each.day,
            account_id=each.account_id,
            account=names.get(each.account_id, each.account_id),
            packages=each.packages,
            compute_s=each.charged_us / 1e6,
            usd=None if executor_usd is None else round(each.charged_us / 3.6e9 * executor_usd, 6),
        )
        for each in ask(master, since)
    ]


def _write_csv(lines: Iterable[Line]) -> None:
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(Line.__struct_fields__)
    for each in lines:
        out.writerow(msgspec.structs.astuple(msgspec.structs.replace(each, account=printable(each.account))))


def _show(report: Report) -> None:
    out = console()
    if not report.usage:
        out.print(f"No package has been settled since {report.since}.", markup=False)
        return
    out.print(usage_table(report))
    if report.executor_usd is not None:
        out.print(
            f"USD: estimated, at {report.executor_usd:.4f} for an hour of an executor; time in which executors are "
            "idle, and calls and payloads, come on top",
            markup=False,
        )


def usage_table(report: Report) -> Table:
    """Make the table of charges, at most 80 columns wide, with a line for the sum."""
    priced = report.executor_usd is not None
    table = frameless(None)
    table.add_column("day", no_wrap=True)
    table.add_column("account", no_wrap=True, overflow="ellipsis", max_width=28)
    for heading in ("packages", "compute time", *(["USD"] if priced else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in report.usage:
        table.add_row(each.day, words(each.account), *_figures(each.packages, each.compute_s, each.usd))
    table.add_row(
        "", "together",
        *_figures(
            sum(each.packages for each in report.usage),
            sum(each.compute_s for each in report.usage),
            sum(each.usd or 0.0 for each in report.usage) if priced else None,
        ),
        style="bold",
    )  # fmt: skip
    return table


def _figures(packages: int, compute_s: float, usd: float | None) -> list[str]:
    return [f"{packages:,}", spans.show(round(compute_s * 1e6)), *([] if usd is None else [f"{usd:,.4f}"])]
