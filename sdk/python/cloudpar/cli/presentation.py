"""Output of commands: JSON for scripts, tables for people."""

import json
import os
import sys
from typing import Any

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cloudpar_protocol.account_messages import Account

from . import spans

PIPE_COLUMNS = 200
"""The width of tables, in characters, if standard output is not a terminal but, for example, a pipe to grep. It is so
large that no text is cut. The environment variable COLUMNS sets another width.
"""

_STATE_STYLES = {
    "active": "green", "running": "cyan", "completed": "green",
    "error": "yellow", "failed": "red", "cancelled": "yellow", "expired": "dim", "revoked": "red",
}  # fmt: skip


def words(text: str) -> str:
    r"""Return text of another user in a form that is safe to print.

    The function replaces control characters, which could change the terminal's state, and escapes the markup of Rich.

    >>> words("[red]\x1b[31m name")
    '\\[red]?[31m name'
    """
    return escape(printable(text))


def printable(text: str) -> str:
    r"""Replace control characters, and marks that change a terminal's output, such as those for right-to-left text.

    >>> printable("a\x9b2J\u202eb")
    'a?2J?b'
    """
    return "".join(character if character.isprintable() else "?" for character in text)


def console() -> Console:
    """Return a console on standard output."""
    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()  # in these cases Rich finds the width itself
    return Console(width=None if known else PIPE_COLUMNS, highlight=False)


def print_json(value: Any) -> None:
    """Print one JSON object on one line, in printable ASCII characters.

    Names that other users choose may contain characters that would change the state of a terminal. JSON permits an
    escape sequence in place of each character of a text.
    """
    text = json.dumps(msgspec.to_builtins(value, str_keys=True), separators=(",", ":"))
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")  # json.dumps does not escape DEL
    sys.stdout.flush()


def frameless(title: str | None) -> Table:
    """Make a table without lines between cells, for output of at most 80 columns."""
    return Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0), pad_edge=False)


def account_table(accounts: list[Account]) -> Table:
    """Make the table of accounts with their quotas, and with their stored bytes if the master has sent these."""
    table = Table("account", "name", "state", title="Accounts" if accounts else None, title_justify="left")
    for heading in ("granted", "spent", "reserved", "left"):
        table.add_column(heading, justify="right")
    counted = any(each.stored_bytes is not None for each in accounts)
    if counted:
        table.add_column("stored", justify="right")
    for each in accounts:
        table.add_row(each.account_id, *account_cells(each), *([_stored(each)] if counted else []))
    return table


def print_roles(accounts: list[Account]) -> None:
    """Print a line for each account whose tasks get the credentials of an IAM role. An ARN fits into no table."""
    for each in accounts:
        if each.task_role is not None:
            console().print(f"tasks of {printable(each.name)}: {each.task_role}", markup=False, soft_wrap=True)


def print_networks(accounts: list[Account]) -> None:
    """Print a line for each account whose tasks may not use the network."""
    for each in accounts:
        if each.network == "none":
            console().print(f"tasks of {printable(each.name)}: no network", markup=False, soft_wrap=True)


def _stored(account: Account) -> str:
    """Return the size of an account's stored data, with its limit if there is one: "1.2 of 50.0 GiB"."""
    figures = [f"{size / 1024**3:.1f}" for size in (account.stored_bytes, account.stored_limit) if size is not None]
    return f"{' of '.join(figures)} GiB"


def account_cells(account: Account) -> tuple[str, ...]:
    """Return the cells of an account's row after its id: name, state, granted, spent, reserved and remaining quota."""
    granted_us, spent_us, reserved_us = account.granted_us, account.spent_us, account.reserved_us
    quota_us = granted_us, spent_us, reserved_us, max(0, granted_us - spent_us - reserved_us)
    return words(account.name), state(account.state), *map(spans.show, quota_us)


def age(then: float, now: float) -> str:
    """Return the time from `then` to `now`, as text, rounded to whole seconds."""
    return spans.show(max(0, round(now - then)) * 1_000_000)


def state(name: str) -> str:
    """Return the name of an account's or package's state, in its colour."""
    return f"[{_STATE_STYLES[name]}]{name}[/]"
