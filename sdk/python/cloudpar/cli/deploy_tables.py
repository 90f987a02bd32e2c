"""The tables of deploy, status and destroy. Tables about what will happen go to standard error."""

import sys

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from cloudpar.deployment.change_set import Doomed
from cloudpar.deployment.check import Check
from cloudpar.deployment.fleet import Fleet
from cloudpar.deployment.leftovers import Leftover
from cloudpar.deployment.prices import Cost, total
from cloudpar.deployment.settings import Change
from cloudpar.deployment.template import Made

from .presentation import PIPE_COLUMNS

_STATES = {"ok": "green", "warning": "yellow", "missing": "yellow", "failed": "red"}


def show(what: RenderableType) -> None:
    """Print to standard error, because standard output is for the command's result."""
    width = None if sys.stderr.isatty() else PIPE_COLUMNS
    Console(stderr=True, width=width, highlight=False).print(what)


def checks_table(checks: list[Check]) -> Table:
    """Make the table of checks with their findings and the fixes."""
    table = Table("check", "state", "found", title="Before anything is made", title_justify="left")
    for each in checks:
        text = each.found if each.state == "ok" or not each.fix else f"{each.found}\n{each.fix}"
        table.add_row(each.name, f"[{_STATES[each.state]}]{each.state}[/]", escape(text))
    return table


def made_table(made: list[Made], title: str) -> Table:
    """Make the table of the resources that a stack consists of."""
    table = Table("for", "what", title=title, title_justify="left")
    table.add_column("count", justify="right")
    for number, each in enumerate(made):
        first = number == 0 or made[number - 1].group != each.group
        table.add_row(each.group if first else "", each.type.removeprefix("AWS::"), str(each.count))
    return table


def settings_table(settings: dict[str, str], changes: list[Change]) -> RenderableType:
    """Make the table of settings and their changes. All settings that are not in the table have their defaults."""
    table = Table("setting", "now", "then", title="Settings", title_justify="left")
    changed = {each.name: each for each in changes}
    for name in sorted(settings.keys() | changed.keys()):
        change = changed.get(name, Change(name, settings.get(name), settings.get(name)))
        before, after = (escape(value) if value is not None else "(default)" for value in (change.before, change.after))
        table.add_row(name, before, f"[bold]{after}[/]" if name in changed else after)
    return table if table.row_count else "Settings: all have their defaults."


def doomed_table(doomed: list[Doomed]) -> Table:
    """Make the table of the resources that an update removes or replaces."""
    table = Table("resource", "name in the template", "fate", title="Resources that do not stay", title_justify="left")
    for each in doomed:
        table.add_row(each.type.removeprefix("AWS::"), each.name, each.fate)
    return table


def idle_table(lines: list[Cost]) -> Table:
    """Make the table of a deployment's costs while no worker runs."""
    table = Table("at rest", "how it comes about", title="USD a month while no worker runs", title_justify="left")
    table.add_column("USD", justify="right")
    for line in lines:
        table.add_row(f"{line.name} (option)" if line.option else line.name, line.why, f"{line.usd:.3f}")
    table.add_section()
    table.add_row("Total", "list prices of us-east-1, without free tiers and options", f"{total(lines):.2f}")
    return table


def leftovers_table(leftovers: list[Leftover]) -> Table:
    """Make the table of the resources that remain after a stack, with the commands that delete them for good."""
    table = Table("stays", "name", title="What outlives the stack", title_justify="left")
    table.add_column("GB", justify="right")
    table.add_column("USD a month", justify="right")
    table.add_column("to delete it for good")
    for each in leftovers:
        size = "-" if each.size_bytes is None else f"{each.size_bytes / 1e9:.3f}"
        usd = "by size" if each.usd is None else f"{each.usd:.2f}"
        table.add_row(each.type.removeprefix("AWS::"), each.name, size, usd, escape(each.delete))
    return table


def fleet_table(fleet: Fleet) -> Table:
    """Make the table of the fleet's instances."""
    table = Table("instance", "type", "zone", "state", "bought", title="Fleet", title_justify="left")
    table.add_column("USD an hour", justify="right")
    for each in fleet.instances:
        usd = "unknown" if each.usd is None else f"{each.usd:.4f}"
        table.add_row(each.id, each.type, each.zone, each.state, "spot" if each.spot else "on demand", usd)
    return table
