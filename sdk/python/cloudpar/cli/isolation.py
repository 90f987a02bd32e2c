"""The options that say whose tasks a worker runs."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal

import click


def isolation_options(default: Literal["own", "shared"]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add isolation options to commands that start a worker. Their values become part of the worker's settings."""
    choice = click.option(
        "--isolation", type=click.Choice(["shared", "own", "none"]), default=default, show_default=True,
        help="shared: tasks are of several people, and are confined. own: tasks may do what you may, and only those of "
        "the master's default account run. none: tasks of all accounts may do what you may.",
    )  # fmt: skip
    readable, writable = (
        click.option(
            f"--{name}", multiple=True, type=click.Path(exists=True, resolve_path=True),
            help=f"With shared: a file or folder that tasks may {verb} besides their own; may be repeated.",
        )
        for name, verb in (("readable", "read"), ("writable", "write"))
    )  # fmt: skip

    network = click.option(
        "--network", type=click.Choice(["outbound", "none"]), default="outbound", show_default=True,
        help="With shared: outbound: tasks use the network of this machine. none: tasks reach only servers that the "
        "same executor has started.",
    )  # fmt: skip

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def checked(*arguments: Any, **options: Any) -> Any:
            if options["isolation"] != "shared" and (options["readable"] or options["writable"]):
                raise click.UsageError(
                    "--readable and --writable go with --isolation shared: otherwise tasks may read and write all that "
                    "you may"
                )
            if options["isolation"] != "shared" and options["network"] == "none":
                raise click.UsageError("--network none goes with --isolation shared: otherwise nothing confines tasks")
            return command(*arguments, **options)

        return choice(readable(writable(network(checked))))

    return add
