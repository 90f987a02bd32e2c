"""Every call of every port has crash points: the scenarios together make all of the calls."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from cloudpar_master import ports
from cloudpar_master.services.backend import Backend
from support.clock import SetClock
from support.stores import embedded

from .scenarios import SCENARIOS, run

HARMLESS = {
    "clock.now": "it only reads the time, in the process itself: a crash here is like one at the next port call",
    "clock.date": "it only converts a time, in the process itself: a crash here is like one at the next port call",
    "accounts.usage": "it only reads, for an operator, who repeats the command",
    "fleet.note": "it only records when hosts were missing, for the timer on AWS, which looks again a minute later",
    "fleet.shortage": "it only reads, for the timer on AWS, which looks again a minute later",
    "accounts.set_network": "it stores one setting, in one transaction, and the operator repeats the command",
    "roles.assign": "it stores one field on AWS, in one conditional write, and the operator repeats the command",
    "roles.credentials": "it only gets credentials, before a lease is answered, and the worker repeats the request",
    "ids.fresh": "it only makes an id, in the process itself, which no other process knows yet",
    "packages.defer": "it only puts a package off that this master cannot fold; the timer finds it sooner or later",
    "fleet.size": "it only reads, for the timer on AWS, which looks again a minute later",
    "packages.at_work": "it only reads, for the timer on AWS, which looks again a minute later",
    "fleet.status": "it only reads, and what it reads appears in an answer only; it may not know at any time",
    "packages.unsettled": "it only reads, before a slice is refused, and the package requests the slice again",
    "queue.waiting": "it only counts, before a start has stored anything, and the client repeats the start",
}
"""The calls that are in no scenario, and why a crash at them does no harm."""

PROTOCOLS: set[Any] = {port for port in vars(ports).values() if getattr(port, "_is_protocol", False)}


def port_calls() -> Iterator[tuple[Any, str]]:
    """Yield every method of every port, by the name that the services have for it."""
    for name, hint in get_type_hints(Backend).items():
        for port in PROTOCOLS.intersection([hint, *get_args(hint)]):
            for method in vars(port):
                if not method.startswith("_"):
                    yield port, f"{name}.{method}"


def test_g09_every_port_call_is_in_a_scenario(tmp_path: Path) -> None:
    clock = SetClock()
    made = {
        call
        for number, scenario in enumerate(SCENARIOS)
        for call in run(scenario, embedded, tmp_path, clock, name=f"run{number}").fuse.calls
    }
    assert {call for _, call in port_calls()} - made == set(HARMLESS)


def test_g09_services_have_every_port() -> None:
    assert {port for port, _ in port_calls()} == PROTOCOLS
