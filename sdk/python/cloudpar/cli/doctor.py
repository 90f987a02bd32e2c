"""`cloudpar doctor`: shows what works here and what is missing."""

import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Unpack

import click
import msgspec
from rich.table import Table

from cloudpar._client.configuration import configure
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import CloudparError

from .access import connect, connect_user, json_option
from .clock_check import check_clock
from .data_folder import default_folder, is_data_folder, read_connection
from .exit_codes import DONE, FAILURE
from .finding import Finding
from .master import User, as_user
from .payload_check import check_payloads
from .presentation import PIPE_COLUMNS, console, print_json, words
from .stack_check import check_stack

_STYLES = {
    "ok": "[green]ok[/]     ",
    "note": "[yellow]note[/]   ",
    "missing": "[yellow]missing[/]",
    "bad": "[red]bad[/]    ",
}


class _Mechanism(msgspec.Struct):
    """One mechanism that confines tasks, as a worker reports it.

    Attributes:
        name: The mechanism's name.
        there: Whether this machine has it.
        gap: The things that tasks can do without the mechanism, and a way to get the mechanism.
        does: The effect of the mechanism here.
        costs: Whether the mechanism forbids something that tasks may need.
        used: Whether workers use the mechanism.
    """

    name: str
    there: bool
    gap: str
    does: str
    costs: bool = False
    used: bool = True


@click.command()
@as_user
@json_option
def doctor(*, as_json: bool, **user: Unpack[User]) -> int:
    """Look at this machine and at the master: Python, what confines tasks, reachability, clock, token, payloads.

    With --stack, look at a deployment on AWS instead of the configured master.
    """
    findings = [*look_here(), *_look_there(user)]
    if as_json:
        print_json({"findings": findings})
    else:
        _print(findings)
    return FAILURE if any(each.verdict == "bad" for each in findings) else DONE


def _print(findings: list[Finding]) -> None:
    """Print a line for each finding. On a terminal, a long line continues below its text, not below its verdict."""
    out = console()
    if out.width == PIPE_COLUMNS:
        for each in findings:
            out.print(f"{_STYLES[each.verdict]}  {words(each.what)}: {words(each.detail)}", soft_wrap=True)
        return
    lines = Table.grid("", "", padding=(0, 2, 0, 0))
    for each in findings:
        lines.add_row(_STYLES[each.verdict].rstrip(), f"{words(each.what)}: {words(each.detail)}")
    out.print(lines)


def look_here() -> Iterator[Finding]:
    """Check this machine."""
    version = platform.python_version()
    known = (3, 11) <= sys.version_info < (3, 15)
    yield Finding("Python", "ok" if known else "bad", version if known else f"{version}: use 3.11 to 3.14")
    yield from _confinement()
    yield _gvisor()


def _confinement() -> Iterator[Finding]:
    asked = subprocess.run(
        [sys.executable, "-P", "-m", "cloudpar_worker", "--check"], capture_output=True, check=False, text=True
    )
    try:
        found = msgspec.json.decode(asked.stdout, type=list[_Mechanism])
    except msgspec.DecodeError:
        yield Finding("worker", "bad", f"it does not start: {' '.join(asked.stderr.split())}")
        return
    for each in found:
        if each.there:
            yield Finding(each.name, "note" if each.costs or not each.used else "ok", each.does)
        else:
            yield Finding(each.name, "missing", each.gap)


def _gvisor() -> Finding:
    """Say whether gVisor is installed. Workers do not use it, but a container of a whole worker may run in it."""
    runner = shutil.which("runsc")
    if runner is None:
        return Finding(
            "gVisor",
            "missing",
            "no runsc is installed here, and nothing is to do: the worker would not use it, so a hole in the kernel "
            "lets task code out of its sandbox (docs/isolation.md)",
        )
    return Finding("gVisor", "note", f"{runner} is installed, but the worker does not use it (docs/isolation.md)")


def _look_there(user: User) -> Iterator[Finding]:
    if user["stack"] is None:
        yield from look_there(user["endpoint"], user["token"], user["folder"])
        return
    given = [f"--{name}" for name, value in (("endpoint", user["endpoint"]), ("token", user["token"])) if value]
    if user["folder"] is not None or given:
        text = f"--stack finds the master by AWS credentials: leave out {', '.join(given) or '--data'}, or --stack"
        raise click.UsageError(text)
    yield from check_stack(user["stack"], user["region"])


def look_there(endpoint: str | None, token: str | None, folder: Path | None) -> Iterator[Finding]:
    """Check the configured master, if there is one."""
    try:
        if folder is None and configure(endpoint, token) is None and not is_data_folder(default_folder()):
            text = f"none is configured, nor has one run on {default_folder()}: a pool starts one of its own"
            yield Finding("master", "missing", text)
            return
        connection = connect_user(endpoint, token, folder)
    except (CloudparError, OSError) as error:
        yield Finding("master", "bad", str(error))
        return
    try:
        who = connection.call(routes.HELLO, Hello())
    except CloudparError as error:
        yield Finding("master", "bad", str(error))
        return
    finally:
        connection.close()
    yield Finding("master", "ok", f"release {who.release} answers at {connection.endpoint}")
    yield Finding("token", "ok", f"good for the role {who.role!r}" + (f", account {who.name}" if who.name else ""))
    yield from check_clock(connection.endpoint)
    yield from _payloads(connection.endpoint, who.role, endpoint, token, folder)


def _payloads(there: str, role: str, endpoint: str | None, token: str | None, folder: Path | None) -> Iterator[Finding]:
    found = None if folder else configure(endpoint, token)
    if found is None:  # a data folder has the tokens of all roles
        account_token = read_connection(folder or default_folder()).token
    elif role == "user":
        account_token = found.token
    else:
        yield Finding("payload", "missing", "not tried: only an account moves payloads, so give its token by --token")
        return
    connection = connect(there, account_token)
    try:
        yield from check_payloads(connection, account_token)
    except CloudparError as error:
        yield Finding("payload", "bad", str(error))
    finally:
        connection.close()
