"""The text that `cloudpar up` prints when it is ready. It shows tokens to a person or a program, but not in logs."""

import os
import stat
import sys
from pathlib import Path

import click
import msgspec

from cloudpar._formatting.quantity import quantity

from .data_folder import ConnectionFile, connection_path
from .presentation import print_json


def announce(connection: ConnectionFile, folder: Path, executors: int, *, as_json: bool) -> None:
    """Print how to use the master.

    At a terminal, the text contains the tokens. Otherwise the output may be a log, such as systemd's journal, so the
    text names the file that contains the tokens. With `--json` a program reads the output. The output then contains the
    tokens, unless it goes to a file or to the journal.
    """
    if as_json:
        announced = {"endpoint": connection.endpoint, "connection_file": str(connection_path(folder))}
        print_json(announced if _is_kept() else msgspec.structs.asdict(connection))
        return
    click.echo(
        f"cloudpar: the master is at {connection.endpoint} with {quantity(executors, 'executor')} here, "
        f"its data in {folder}\n"
    )
    click.echo(with_tokens(connection) if sys.stdout.isatty() else _without_tokens(connection, folder))
    click.echo("\nCtrl-C lets the executors finish their tasks, and ends.")
    sys.stdout.flush()


def with_tokens(connection: ConnectionFile) -> str:
    """Return the text for a terminal: commands to paste, which contain the tokens."""
    return (
        f"To use it:\n\n"
        f"  export CLOUDPAR_ENDPOINT={connection.endpoint}\n"
        f"  export CLOUDPAR_TOKEN={connection.token}\n\n"
        f"To add a worker, if all tasks are yours (docs/isolation.md has the others):\n\n"
        f"  export CLOUDPAR_WORKER_TOKEN={connection.worker_token}\n"
        f"  cloudpar worker --endpoint {connection.endpoint} --executors 2 --isolation own"
    )


def _without_tokens(connection: ConnectionFile, folder: Path) -> str:
    return (
        f"To use it:\n\n"
        f"  export CLOUDPAR_ENDPOINT={connection.endpoint}\n\n"
        f"The tokens are in {connection_path(folder)}, which only its owner may read: `token` is for CLOUDPAR_TOKEN, "
        f"`worker_token` for CLOUDPAR_WORKER_TOKEN of `cloudpar worker`."
    )


def _is_kept() -> bool:
    """Return whether standard output is a file or systemd's journal, whose socket JOURNAL_STREAM names."""
    status = os.fstat(sys.stdout.fileno())
    return stat.S_ISREG(status.st_mode) or os.environ.get("JOURNAL_STREAM") == f"{status.st_dev}:{status.st_ino}"
