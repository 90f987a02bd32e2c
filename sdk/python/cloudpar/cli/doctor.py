"""`cloudpar doctor`: what there is here, and what is missing."""

import http.client
import platform
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import click
import msgspec
from rich.markup import escape

from cloudpar.configuration import configure
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import CloudparError

from .access import connect, connect_user, json_option, user_options
from .data_folder import default_folder, is_data_folder, read_connection
from .exit_codes import DONE, FAILURE
from .finding import Finding
from .payload_check import check_payloads
from .presentation import console, print_json

SKEW_S = 30.0
"""By so much links to payloads are signed for longer than they need."""
_ANSWER_S = 5.0
_STYLES = {"ok": "[green]ok[/]     ", "missing": "[yellow]missing[/]", "bad": "[red]bad[/]    "}


class _Mechanism(msgspec.Struct):
    """As a worker reports it."""

    name: str
    there: bool
    gap: str
    does: str


@click.command()
@user_options
@json_option
def doctor(*, endpoint: str | None, token: str | None, folder: Path | None, as_json: bool) -> int:
    """Look at this machine and at the master: Python, what confines tasks, reachability, clock, token, payloads."""
    findings = [*look_here(), *look_there(endpoint, token, folder)]
    if as_json:
        print_json({"findings": findings})
    else:
        out = console()
        for each in findings:
            out.print(f"{_STYLES[each.verdict]}  {each.what}: {escape(each.detail)}", soft_wrap=True)
    return FAILURE if any(each.verdict == "bad" for each in findings) else DONE


def look_here() -> Iterator[Finding]:
    """At this machine."""
    version = platform.python_version()
    known = (3, 11) <= sys.version_info < (3, 15)
    yield Finding("Python", "ok" if known else "bad", version if known else f"{version}: use 3.11 to 3.14")
    yield from _confinement()


def _confinement() -> Iterator[Finding]:
    asked = subprocess.run(
        [sys.executable, "-P", "-m", "cloudpar_worker", "--check"], capture_output=True, check=False, text=True
    )
    try:
        found = msgspec.json.decode(asked.stdout, type=list[_Mechanism])
    except msgspec.DecodeError:
        yield Finding("worker", "bad", f"it does not start: {asked.stderr.strip()}")
        return
    for each in found:
        yield Finding(each.name, "ok", each.does) if each.there else Finding(each.name, "missing", each.gap)


def look_there(endpoint: str | None, token: str | None, folder: Path | None) -> Iterator[Finding]:
    """At the master that is configured, if there is one."""
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
    yield Finding("master", "ok", f"release {who.release} answers at {connection.endpoint}")
    yield Finding("token", "ok", f"good for the role {who.role!r}" + (f", account {who.name}" if who.name else ""))
    yield from _clock(connection.endpoint)
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


def _clock(endpoint: str) -> Iterator[Finding]:
    before = time.time()
    try:
        with urllib.request.urlopen(endpoint, timeout=_ANSWER_S) as answer:  # noqa: S310 - checked: http or https
            date = answer.headers.get("Date")
    except urllib.error.HTTPError as error:  # any answer tells the time
        date = error.headers.get("Date")
        error.close()
    except (OSError, http.client.HTTPException):
        return
    if date is None:
        return
    try:
        theirs = parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        detail = f"the answer of {endpoint} has no time that can be read, but {date!r}: see what changes it on the way"
        yield Finding("clock", "missing", detail)
        return
    skew_s = max(before - theirs - 1.0, theirs - time.time(), 0.0)  # a Date has whole seconds
    fine = skew_s <= SKEW_S
    yield Finding("clock", "ok" if fine else "bad", f"{skew_s:.0f} s from the master's" + ("" if fine else ": set it"))
