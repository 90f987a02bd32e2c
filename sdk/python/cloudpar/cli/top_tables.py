"""The tables of `cloudpar top`: without frames and with shortened ids, so that they fit 80 columns."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import PackageSummary

from . import spans
from .presentation import account_cells, frameless, state, words
from .set_aside import ID_CHARS

NAME_CHARS = 12


def packages(listed: Sequence[PackageSummary], names: Mapping[str, str], left_s: Mapping[str, float]) -> Table:
    """Make the table of packages with their progress, and with their accounts if there are several.

    Args:
        listed: The packages, in the order of the table.
        names: The accounts' names, by id.
        left_s: The estimated remaining time in seconds, by package id.
    """
    several = len({each.account_id for each in listed}) > 1
    table = frameless("Packages" if listed else None)
    table.expand = True  # the function's column takes the width that the others leave
    table.add_column("package", no_wrap=True)
    table.add_column("function", no_wrap=True, overflow="ellipsis", min_width=6, ratio=1)
    table.add_column("state", no_wrap=True)
    if several:
        table.add_column("account", no_wrap=True, overflow="ellipsis", max_width=8)
    for heading in ("tasks", "done", "errors", "exec", "charged", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in listed:
        progress, running = each.progress, each.state == "running"
        account = words(names.get(each.account_id, each.account_id))
        table.add_row(
            each.package_id[:ID_CHARS], words(each.name) or "-", state(each.state), *([account] if several else []),
            f"{progress.tasks:,}", f"{progress.done * 100 // progress.tasks if progress.tasks else 100} %",
            f"{progress.errors:,}", str(progress.executors) if running else "-", spans.show(progress.charged_us),
            spans.show(round(left_s[each.package_id]) * 1_000_000) if each.package_id in left_s else "-",
        )  # fmt: skip
    return table


def accounts(listed: Sequence[Account]) -> Table:
    """Make the table of accounts with their quotas."""
    table = frameless("Accounts" if listed else None)
    for heading in ("account", "name", "state"):
        table.add_column(heading, no_wrap=True, overflow="ellipsis", max_width=NAME_CHARS)
    for heading in ("granted", "spent", "reserved", "left"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in listed:
        table.add_row(each.account_id[:ID_CHARS], *account_cells(each))
    return table
