"""`python -m cloudpar_worker --stdin`: a worker's agent, configured by one JSON line on standard input."""

import argparse
import os
import sys

from .executor.orphans import hide_memory
from .settings import parse
from .zygotes import Zygotes


def main() -> int:
    """Run an agent until it is drained, interrupted, or its parent is gone."""
    parser = argparse.ArgumentParser(prog="python -m cloudpar_worker", description=__doc__)
    parser.add_argument(
        "--stdin",
        action="store_true",
        required=True,
        help="read {endpoint, token, executors, memory_mb, tmp, pythons} as a JSON line; its end is the agent's",
    )
    parser.parse_args()
    try:
        with open(0, "rb", buffering=0, closefd=False) as stdin:
            settings = parse(stdin.readline())
    except ValueError as error:
        print(f"cloudpar worker: {error}", file=sys.stderr)  # noqa: T201
        return 2
    hide_memory()
    zygotes = Zygotes(settings.interpreters, settings.tmp)
    from .agent import Agent  # noqa: PLC0415 - while the zygote starts

    code = Agent(settings, zygotes, stdin=0).run()
    zygotes.close()
    return code


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    os._exit(exit_code)  # without waiting for threads that a silent master holds
