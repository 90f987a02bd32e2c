"""A program that runs the Lambda functions of the release whose code it imports, for a test that has another release.

It uses only what every release has. It first prints a line that says which code it runs. Then it answers each line of
its input, an event for one of the functions, by one line. Both are JSON.
"""

import importlib
import json
import os
import sys

import cloudpar_master
import cloudpar_protocol

NAMES = ["client", "worker", "account", "timer"]


class Context:
    """The context that Lambda passes to a handler."""

    aws_request_id = "request-1"

    def get_remaining_time_in_millis(self) -> int:
        """Return the time that every function has enough of."""
        return 60_000


def main() -> None:
    """Import the functions, and answer events until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    sys.stdout = sys.stderr  # the functions' log goes to the standard output
    functions = {name: importlib.import_module(f"cloudpar_handlers.{name}") for name in NAMES}
    facts = [cloudpar_protocol.__version__, cloudpar_protocol.__file__, cloudpar_master.__file__]
    print(json.dumps(facts), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = functions[asked["function"]].handle(asked["event"], Context())
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
