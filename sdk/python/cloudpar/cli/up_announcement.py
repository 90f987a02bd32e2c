"""What `cloudpar up` prints when it is ready. Tokens go to a person or a program, and into no log."""

import os
import stat
import sys
from pathlib import Path

import click
import msgspec

from cloudpar.quantity import quantity

from .data_folder import ConnectionFile, connection_path
from .presentation import print_json


def announce(connection: ConnectionFile, folder: Path, executors: int, *, as_json: bool) -> None:
    """Print how to use the master.

    Without a terminal the output may be a log, such as systemd's journal: then it names the file that holds the tokens.
    `--json` is asked for by a program, which reads a pipe: it gets them, but a file or a journal does not.
    """
    if as_json:
        told = {"endpoint": connection.endpoint, "connection_file": str(connection_path(folder))}
        print_json(msgspec.structs.asdict(connection) if _is_terminal() or _is_pipe() else told)
        return
    click.echo(
        f"cloudpar: the master is at {connection.endpoint} with {quantity(executors, 'executor')} here, "
        f"its data in {folder}\n"
    )
    click.echo(with_tokens(connection) if _is_terminal() else _without_tokens(connection, folder))
    click.echo("\nCtrl-C lets the executors finish their tasks, and ends.")
    sys.stdout.flush()


def with_tokens(connection: ConnectionFile) -> str:
    """What a person at a terminal pastes."""
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


def _is_terminal() -> bool:
    return sys.stdout.isatty()


def _is_pipe() -> bool:
    return stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode)
