"""`cloudpar top`: shows the pool live."""

import time
from collections import deque
from typing import Unpack

import click
import msgspec
from rich.console import Group
from rich.live import Live
from rich.text import Text

from cloudpar._client.pacing import remaining_s
from cloudpar._formatting.quantity import quantity
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts
from cloudpar_protocol.client_messages import Hello, ListPackages, PackageSummary

from . import set_aside, top_tables
from .access import json_option
from .master import Master, User, as_user, of_user
from .presentation import console, print_json

ROWS = 20

NOTES = 5
"""How many reasons for set-aside workers are shown; `cloudpar workers` shows all."""

RATE_S = 10.0
"""The period over which the rate of tasks is measured, in seconds. Results arrive in batches, so over a shorter period
the rate would jump."""


class MasterState(msgspec.Struct, frozen=True):
    """The pool at one moment, as far as this token sees it.

    Attributes:
        at: The time, in seconds since 1970.
        endpoint: The master's URL.
        executors: The number of executors that have recently published results of running packages.
        packages: The newest 100 packages, newest first.
        accounts: With the admin token, all accounts; otherwise the token's own account.
    """

    at: float
    endpoint: str
    executors: int
    packages: list[PackageSummary]
    accounts: list[Account]

    @property
    def done(self) -> int:
        """The number of ended tasks of all listed packages."""
        return sum(each.progress.done for each in self.packages)


def take(master: Master) -> MasterState:
    """Ask the master for the state of the pool.

    Raises:
        CloudparError: The master refuses a request or does not answer.
    """
    caller = master.call(routes.HELLO, Hello())
    listed = master.call(routes.LIST_PACKAGES, ListPackages())
    found = listed.packages
    at = time.time()
    if caller.role == "admin":
        accounts = master.call(routes.LIST_ACCOUNTS, ListAccounts()).accounts
    else:
        own = Account(
            account_id=caller.account_id or "-",
            name=caller.name or "-",
            state="active",
            granted_us=caller.granted_us,
            spent_us=caller.spent_us,
            created_at=at,
        )
        accounts = [own]
    executors = listed.executors
    if executors is None:  # a master of an earlier release; a sum would count some executors several times
        executors = max((each.progress.executors for each in found if each.state == "running"), default=0)
    return MasterState(at=at, endpoint=master.endpoint, executors=executors, packages=found, accounts=accounts)


def draw(now: MasterState, before: MasterState | None = None) -> Group:
    """Draw the screen. It shows the rate of tasks only if `before`, an earlier state, is given."""
    running = sum(each.state == "running" for each in now.packages)
    head = f"{now.endpoint}   {running} running, {quantity(now.executors, 'executor')} at work"
    if before is not None and now.at > before.at:
        head += f"   {max(0, now.done - before.done) / (now.at - before.at):,.0f} tasks/s"
    # Show running packages first, because the whole list of a busy pool may not fit on the screen.
    rows = sorted(now.packages, key=lambda each: each.state != "running")[:ROWS]
    names = {each.account_id: each.name for each in now.accounts}
    notes = list(set_aside.of_packages(each for each in rows if each.state == "running"))
    return Group(
        Text(head, style="bold"),
        top_tables.packages(rows, names, _left_s(now, before)),
        *[Text.from_markup(line, style="yellow") for line in notes[:NOTES]],
        top_tables.accounts(now.accounts[:ROWS]),
    )


def _left_s(now: MasterState, before: MasterState | None) -> dict[str, float]:
    """Estimate the remaining seconds of each running package, from its rate since `before` or its mean duration."""
    done_before = {} if before is None else {each.package_id: each.progress.done for each in before.packages}
    left: dict[str, float] = {}
    for each in now.packages:
        progress = each.progress
        done = progress.done - done_before.get(each.package_id, progress.done)
        if each.state != "running":
            continue
        if before is not None and done > 0:
            left[each.package_id] = (progress.tasks - progress.done) * (now.at - before.at) / done
        elif (left_s := remaining_s(progress)) is not None:
            left[each.package_id] = left_s
    return left


@click.command()
@click.option("--once", is_flag=True, help="Print once and end.")
@click.option(
    "--interval", "interval_s", type=click.FloatRange(min=0.1), default=1.0, show_default=True, help="Seconds."
)
@as_user
@json_option
def top(*, once: bool, interval_s: float, as_json: bool, **user: Unpack[User]) -> None:
    """Watch packages, quotas and executors; Ctrl-C ends it. --json prints one object a line."""
    master = of_user(user)
    state = take(master)
    if once:
        if as_json:
            print_json(state)
        else:
            console().print(draw(state))
        return
    try:
        if as_json:
            _stream(master, state, interval_s)
        else:
            _watch(master, state, interval_s)
    except KeyboardInterrupt:
        return


def _stream(master: Master, state: MasterState, interval_s: float) -> None:
    while True:
        print_json(state)
        time.sleep(interval_s)
        state = take(master)


def _watch(master: Master, state: MasterState, interval_s: float) -> None:
    earlier = deque([state])
    with Live(draw(state), console=console(), auto_refresh=False, transient=True) as live:
        while True:
            time.sleep(interval_s)
            state = take(master)
            while len(earlier) > 1 and state.at - earlier[0].at > RATE_S:
                earlier.popleft()
            live.update(draw(state, earlier[0]), refresh=True)
            earlier.append(state)
