"""The command `cloudpar`. Exit codes are documented in `cloudpar.cli.exit_codes`."""

import sys


def main() -> None:
    """Run the command that this process's arguments name, and exit with its code."""
    from .application import run

    sys.exit(run(sys.argv[1:]))
