"""What commands print: JSON for scripts, tables for people."""

import sys
import time
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import PackageSummary

from . import spans

PIPE_COLUMNS = 200
"""Wide enough that nothing is cut when the output is read by a program such as grep."""

_STATE_STYLES = {
    "active": "green", "running": "cyan", "completed": "green",
    "error": "yellow", "failed": "red", "cancelled": "yellow", "expired": "dim", "revoked": "red",
}  # fmt: skip


def words(text: str) -> str:
    r"""What somebody else has named, as it may stand in a terminal, which the invisible of its characters could change.

    >>> words("[red]\x1b[31m name")
    '\\[red]?[31m name'
    """
    return escape("".join(character if character.isprintable() else "?" for character in text))


def console() -> Console:
    """Standard output."""
    return Console(width=None if sys.stdout.isatty() else PIPE_COLUMNS, highlight=False)


def print_json(value: Any) -> None:
    """One JSON object on one line."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
    sys.stdout.flush()


def account_table(accounts: list[Account]) -> Table:
    """Accounts with their quotas."""
    table = Table("account", "name", "state", title="Accounts" if accounts else None, title_justify="left")
    for heading in ("granted", "spent", "reserved", "left"):
        table.add_column(heading, justify="right")
    for each in accounts:
        table.add_row(
            each.account_id, words(each.name), state(each.state),
            spans.show(each.granted_us), spans.show(each.spent_us), spans.show(each.reserved_us),
            spans.show(max(0, each.granted_us - each.spent_us - each.reserved_us)),
        )  # fmt: skip
    return table


def package_table(packages: list[PackageSummary]) -> Table:
    """Packages with their progress, and with their accounts if these are several."""
    table = Table("package", "function", "state", title="Packages" if packages else None, title_justify="left")
    several = len({each.account_id for each in packages}) > 1
    if several:
        table.add_column("account")
    for heading in ("tasks", "done", "errors", "executors", "charged", "age"):
        table.add_column(heading, justify="right")
    now = time.time()
    for each in packages:
        progress = each.progress
        table.add_row(
            each.package_id, words(each.name) or "-", state(each.state), *([each.account_id] if several else []),
            f"{progress.tasks:,}", f"{progress.done:,}", f"{progress.errors:,}",
            str(progress.executors) if each.state == "running" else "-",
            spans.show(progress.charged_us), age(each.started_at, now),
        )  # fmt: skip
    return table


def age(then: float, now: float) -> str:
    """How long ago, in whole seconds."""
    return spans.show(max(0, round(now - then)) * 1_000_000)


def state(name: str) -> str:
    """An account's or a package's state in its colour."""
    return f"[{_STATE_STYLES[name]}]{name}[/]"
