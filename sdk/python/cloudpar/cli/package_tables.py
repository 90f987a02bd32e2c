"""The table of `cloudpar packages`: the main columns fit into 80 characters, wider terminals show more."""

import itertools
import os
import time
from collections.abc import Mapping, Sequence

from rich.table import Table

from cloudpar_protocol.client_messages import PackageSummary

from . import spans
from .presentation import age, frameless, state, words
from .set_aside import ID_CHARS

COST_COLUMNS = 100
"""From this terminal width on, in characters, the table also shows the executors and the charge."""

ID_COLUMNS = 160
"""From this terminal width on, in characters, ids are not shortened."""

NAME_CHARS, ACCOUNT_CHARS = 40, 12


def packages(listed: Sequence[PackageSummary], names: Mapping[str, str] | None, columns: int) -> Table:
    """Make the table of packages with their progress.

    Args:
        listed: The packages, in the order of the table.
        names: The accounts' names by id, if the list has packages of several accounts. An account without a name is
            shown by its id. None means that the table has no column for accounts.
        columns: The width of the terminal, in characters.
    """
    wide = columns >= COST_COLUMNS
    table = frameless("Packages" if listed else None)
    table.expand = columns < ID_COLUMNS  # the function's column gets the remaining width
    table.add_column("package", no_wrap=True)
    table.add_column("function", no_wrap=True, overflow="ellipsis", min_width=6, max_width=NAME_CHARS, ratio=1)
    table.add_column("state", no_wrap=True)
    if names is not None:
        table.add_column("account", no_wrap=True, overflow="ellipsis", max_width=ACCOUNT_CHARS)
    for heading in ("tasks", "done", "errors", *(("executors", "charged") if wide else ()), "age"):
        table.add_column(heading, justify="right", no_wrap=True)
    chars = None if columns >= ID_COLUMNS else id_chars([each.package_id for each in listed])
    now = time.time()
    for each in listed:
        progress = each.progress
        cost = str(progress.executors) if each.state == "running" else "-", spans.show(progress.charged_us)
        table.add_row(
            each.package_id[:chars], words(each.name) or "-", state(each.state),
            *([words(names.get(each.account_id, each.account_id))] if names is not None else []),
            f"{progress.tasks:,}", f"{progress.done:,}", f"{progress.errors:,}", *(cost if wide else ()),
            age(each.started_at, now),
        )  # fmt: skip
    return table


def id_chars(package_ids: Sequence[str]) -> int:
    """Return the number of first characters that distinguish each id of a list from the other ids; at least ID_CHARS.

    >>> id_chars(["1234567890", "1234567899", "2"])
    10
    >>> id_chars(["1234567890"])
    8
    """
    alike = map(os.path.commonprefix, itertools.pairwise(sorted(set(package_ids))))
    return max([ID_CHARS, *(len(common) + 1 for common in alike)])
