"""`cloudpar packages`: running packages and earlier ones."""

import time
from typing import Unpack

import click

from cloudpar._client.package_search import NEWEST, find
from cloudpar._formatting.quantity import quantity
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import ListAccounts
from cloudpar_protocol.client_messages import CancelTasks, Hello, ListPackages

from . import package_tables, set_aside, spans
from .access import json_option
from .listing_group import ListingGroup
from .master import Master, User, as_user, of_user
from .presentation import age, console, print_json, words


def _not_empty(_context: click.Context, _parameter: click.Parameter, text: str) -> str:
    if not text:
        raise click.BadParameter("it is empty, as of a variable that is not set: give the first characters of an id")
    return text


package_argument = click.argument("package_id", callback=_not_empty)


@click.group(cls=ListingGroup)
def packages() -> None:
    """List, show and cancel packages (without a command: list)."""


@packages.command("list")
@click.option("--limit", type=click.IntRange(1, NEWEST), default=100, show_default=True, help="How many.")
@as_user
@json_option
def list_packages(*, limit: int, as_json: bool, **user: Unpack[User]) -> None:
    """List the account's packages, newest first; with the admin token or --stack every account's."""
    master = of_user(user)
    found = master.call(routes.LIST_PACKAGES, ListPackages(limit=limit)).packages
    if as_json:
        print_json({"packages": found})
        return
    out = console()
    names = account_names(master) if len({each.account_id for each in found}) > 1 else None
    out.print(package_tables.packages(found, names, out.width) if found else "No packages yet.")
    for line in set_aside.of_packages(found):
        out.print(line)
    for package in found:
        if package.reason == "unreadable":
            out.print(words(f"{package.package_id}: {package.message}"))


def account_names(master: Master) -> dict[str, str]:
    """Return the names of the accounts that the caller may see, by id."""
    caller = master.call(routes.HELLO, Hello())
    if caller.role == "admin":
        accounts = master.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
        return {each.account_id: each.name for each in accounts}
    return {caller.account_id: caller.name} if caller.account_id and caller.name else {}


@packages.command()
@package_argument
@as_user
@json_option
def show(*, package_id: str, as_json: bool, **user: Unpack[User]) -> None:
    """Show one package; the first characters of its id are enough."""
    master = of_user(user)
    found = find(master, package_id)
    if as_json:
        print_json({"package": found})
        return
    out = console()
    out.print(package_tables.packages([found], None, out.width))
    out.print(f"package {found.package_id}", soft_wrap=True)
    account = account_names(master).get(found.account_id, found.account_id)
    out.print(f"account {words(account)}, {spans.show(found.progress.mean_us)} a task")
    for line in set_aside.of_packages([found]):
        out.print(line)
    if found.reason:
        out.print(words(f"reason: {found.reason}" + (f" ({found.message})" if found.message else "")))


@packages.command()
@package_argument
@as_user
@json_option
def cancel(*, package_id: str, as_json: bool, **user: Unpack[User]) -> None:
    """Cancel a package: running tasks are stopped, and their time is charged. If it has ended, it stays as it is."""
    master = of_user(user)
    found = find(master, package_id)
    reply = master.call(routes.CANCEL_TASKS, CancelTasks(package_id=found.package_id))
    ended = found.state != "running" or reply.state != "cancelled"
    tasks = 0 if ended else sum(end - start for start, end in reply.cancelled)
    if as_json:
        print_json(
            {
                "package_id": found.package_id, "state": reply.state, "had_ended": ended, "cancelled": tasks,
                "charged_us": reply.charged_us,
            }
        )  # fmt: skip
        return
    if ended:
        ago = f" {age(found.ended_at, time.time())} ago" if found.ended_at else ""
        what = f"had ended{ago} ({reply.state}), so there was nothing to cancel"
    else:
        what = f"cancelled, {quantity(tasks, 'task')} without a result"
    console().print(f"{found.package_id}: {what}; {spans.show(reply.charged_us)} charged")
