"""`make specification` checks every state that the specification can reach, in several configurations."""

import sys
import time

from .tlc import CHECKED, FOUND, running

TOTAL = "states generated"
PROGRESS = ("Progress(", "Checking", TOTAL)


def check(config: str) -> bool:
    """Check one configuration, and print how far it is. Prints all of TLC's output if it finds an error."""
    started, lines = time.monotonic(), list[str]()
    print(f"specification: {config}.cfg", flush=True)
    with running("Packages", config, "-workers", "auto") as printed:
        for line in printed:
            lines.append(line)
            if line.startswith(PROGRESS) or TOTAL in line:
                print(f"  {line.rstrip()}", flush=True)
    correct = FOUND in "".join(lines)
    print("" if correct else "".join(lines), end="")
    print(f"  {'holds' if correct else 'DOES NOT HOLD'}, {time.monotonic() - started:.0f} s", flush=True)
    return correct


if __name__ == "__main__":
    correct = [check(config) for config in CHECKED]
    sys.exit(not all(correct))
