"""Checks that hold in every state. Each concerns one part of the data."""

from typing import Any

from cloudpar_master.core.head import stored
from cloudpar_protocol import ranges
from support.checks import hold

from .deployment import AccountRows, History, PackageRows, is_damaged


def check_part(part: str, content: Any) -> None:
    """Check new data of a part."""
    if part == "accounts":
        _check_accounts(content)
    elif part == "packages":
        _check_packages(content)


def _check_accounts(rows: AccountRows) -> None:
    """No account is overdrawn, and each microsecond is free, reserved by a slice, or charged to a package."""
    accounts = rows.accounts.values()
    for account in accounts:
        hold(min(account.spent_us, account.reserved_us) >= 0, "an account is below 0", account)
        hold(account.spent_us + account.reserved_us <= account.granted_us, "an account is overdrawn", account)
    held_us = sum(sum(slices.values()) for slices in rows.slices.values())
    hold(held_us == sum(account.reserved_us for account in accounts), "the slices are not what is reserved", rows)
    hold(sum(rows.charged.values()) == sum(account.spent_us for account in accounts), "a charge is lost", rows)


def _check_packages(rows: PackageRows) -> None:
    """Each task is uncut, open, cancelled, or has one result, unless the package's head is damaged."""
    for package_id, row in rows.rows.items():
        if is_damaged(row):
            continue
        head = stored.decode(row.head)
        history = rows.histories[head.billing_id]
        tasks = head.tasks
        cancelled = ranges.size(tasks.cancelled)
        hold(tasks.done == len(history.committed) + cancelled, package_id, "counts its done tasks wrong")
        if not head.life.ended:
            left = ranges.size([(each.start, each.end) for each in tasks.open])
            uncut = ranges.size(ranges.subtract([(tasks.cursor, tasks.count)], tasks.cancelled))
            hold(tasks.done + left + uncut == tasks.count, package_id, "has lost a task", tasks)
        _check_history(history)


def _check_history(history: History) -> None:
    if history.state == "completed":
        hold(len(history.committed) + history.cancelled == history.tasks, "it completed without all results", history)
