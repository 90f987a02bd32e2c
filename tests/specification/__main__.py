"""`make specification` checks every state that the specification can reach, in several configurations."""

import sys
import time
from typing import Final

from .tlc import CHECKED, FOUND, running

TOTAL = "states generated"
PROGRESS = ("Progress(", "Checking", TOTAL)
LIMIT_S: Final = 300.0
"""How long one configuration may take. All together take under two minutes on two cores that do nothing else."""


def check(config: str, limit_s: float = LIMIT_S) -> bool:
    """Check one configuration, and print how far it is. Prints all of TLC's output if it finds an error.

    After `limit_s`, the check is stopped, and counts as failed.
    """
    started, lines = time.monotonic(), list[str]()
    print(f"specification: {config}.cfg", flush=True)
    with running("Packages", config, "-workers", "auto", limit_s=limit_s) as printed:
        for line in printed:
            lines.append(line)
            if line.startswith(PROGRESS) or TOTAL in line:
                print(f"  {line.rstrip()}", flush=True)
    correct, took_s = FOUND in "".join(lines), time.monotonic() - started
    print("" if correct else "".join(lines), end="")
    if not correct and took_s >= limit_s:
        print(f"{config}.cfg: stopped after {limit_s:.0f} s: fewer states, or a larger LIMIT_S, are needed")
    print(f"  {'holds' if correct else 'DOES NOT HOLD'}, {took_s:.0f} s", flush=True)
    return correct


if __name__ == "__main__":
    correct = [check(config) for config in CHECKED]
    sys.exit(not all(correct))
