"""Replays behaviours of the specification against the master."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from .machine import Machine
from .tlc import FOLDER
from .values import states, value
from .view import Drift, expected

CONSTANT = re.compile(r"^  (\w+) = (.+)$", re.MULTILINE)


def constants() -> dict[str, Any]:
    """Return the constants with which the replayed behaviours were made."""
    return {name: value(text) for name, text in CONSTANT.findall((FOLDER / "Replay.cfg").read_text())}


def replay(behaviours: Sequence[str], folder: Path) -> Counter[str]:
    """Replay behaviours, and compare the states after each step. Returns how often each step was taken.

    Raises:
        Drift: The master does something else than the specification says.
    """
    taken: Counter[str] = Counter()
    for number, behaviour in enumerate(behaviours):
        with pytest.MonkeyPatch.context() as patch:
            machine = Machine(constants(), folder, patch)
            for at, state in enumerate(states(behaviour)):
                name, *arguments = state["step"]
                if at:
                    try:
                        machine.take(name, *arguments)
                    except Drift as drift:
                        raise Drift(f"behaviour {number}, step {at}, {state['step']}: {drift}") from None
                    taken[name] += 1
                different = list(_differences("", machine.seen(), expected(state)))
                if different:
                    text = "\n  ".join(different)
                    raise Drift(f"behaviour {number}, step {at}, {state['step']}:\n  {text}")
    return taken


def _differences(where: str, seen: Any, wanted: Any) -> Iterator[str]:
    if isinstance(seen, dict) and isinstance(wanted, dict) and not isinstance(seen, Counter):
        for name in wanted:
            yield from _differences(f"{where}.{name}", seen[name], wanted[name])
    elif seen != wanted:
        yield f"{where[1:]}: the master has {seen}, the specification {wanted}"
