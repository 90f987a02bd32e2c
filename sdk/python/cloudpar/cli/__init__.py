"""The command `cloudpar`. Exit codes are documented in `cloudpar.cli.exit_codes`."""

import sys


def main() -> None:
    """Run the command that was typed."""
    from .application import run

    sys.exit(run(sys.argv[1:]))
