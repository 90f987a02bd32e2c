"""`cloudpar packages`: what runs and what ran."""

from pathlib import Path

import click

from cloudpar.connection import Connection
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks, ListPackages, PackageSummary
from cloudpar_protocol.errors import NotFound

from . import spans
from .access import connect_user, json_option, user_options
from .presentation import console, package_table, print_json

NEWEST = 1000
"""As many packages as the master lists at once."""


@click.group(invoke_without_command=True)
@click.pass_context
def packages(context: click.Context) -> None:
    """List, show and cancel packages (without a command: list)."""
    if context.invoked_subcommand is None:
        context.invoke(list_packages)


@packages.command("list")
@click.option("--limit", type=click.IntRange(1, NEWEST), default=100, show_default=True, help="How many.")
@user_options
@json_option
def list_packages(limit: int, endpoint: str | None, token: str | None, folder: Path | None, as_json: bool) -> None:
    """List the account's packages, newest first; with the admin token every account's."""
    request = ListPackages(limit=limit)
    found = connect_user(endpoint, token, folder).call(routes.LIST_PACKAGES, request).packages
    if as_json:
        print_json({"packages": found})
    else:
        console().print(package_table(found) if found else "No packages yet.")


@packages.command()
@click.argument("package_id")
@user_options
@json_option
def show(package_id: str, endpoint: str | None, token: str | None, folder: Path | None, as_json: bool) -> None:
    """Show one package; the first characters of its id are enough."""
    found = find(connect_user(endpoint, token, folder), package_id)
    if as_json:
        print_json({"package": found})
        return
    out = console()
    out.print(package_table([found]))
    out.print(f"account {found.account_id}, {spans.show(found.progress.mean_us)} a task")
    if found.reason:
        out.print(f"reason: {found.reason}" + (f" ({found.message})" if found.message else ""), markup=False)


@packages.command()
@click.argument("package_id")
@user_options
@json_option
def cancel(package_id: str, endpoint: str | None, token: str | None, folder: Path | None, as_json: bool) -> None:
    """Cancel a package: what runs is stopped, and what has run is charged."""
    connection = connect_user(endpoint, token, folder)
    found = find(connection, package_id)
    reply = connection.call(routes.CANCEL_TASKS, CancelTasks(package_id=found.package_id))
    cancelled = sum(end - start for start, end in reply.cancelled)
    if as_json:
        print_json(
            {
                "package_id": found.package_id,
                "state": reply.state,
                "cancelled": cancelled,
                "charged_us": reply.charged_us,
            }
        )
    else:
        console().print(
            f"{found.package_id}: {reply.state}, {cancelled:,} tasks without a result, "
            f"{spans.show(reply.charged_us)} charged"
        )


def find(connection: Connection, package_id: str) -> PackageSummary:
    """The package of that id, or the only one whose id begins so.

    Raises:
        NotFound: There is none, or more than one.
    """
    listed = connection.call(routes.LIST_PACKAGES, ListPackages(limit=NEWEST)).packages
    found = [each for each in listed if each.package_id.startswith(package_id)]
    exact = [each for each in found if each.package_id == package_id]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise NotFound(f"{len(found)} packages begin with {package_id!r}: give more of the id")
    raise NotFound(f"no package {package_id!r} among this token's newest {NEWEST}: see `cloudpar packages list`")
