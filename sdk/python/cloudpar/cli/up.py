"""`cloudpar up`: runs a master and an agent on this machine, in the foreground."""

import errno
import math
import socket
from contextlib import ExitStack, suppress
from pathlib import Path

import click

from cloudpar._local import programs
from cloudpar._local.restart_policy import RestartPolicy
from cloudpar_protocol.errors import CloudparError
from cloudpar_protocol.limits import EXECUTORS

from .access import json_option
from .data_folder import check_writable, default_folder, read_connection
from .executor_options import memory_option, threads_option
from .exit_codes import PortInUse
from .foreground import EndRequested, Foreground
from .isolation import isolation_options
from .up_announcement import announce

PORT = 8642


@click.command()
@click.option("--workers", type=click.IntRange(0, EXECUTORS), default=None, help="Executors.  [default: one a core]")
@memory_option
@threads_option
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="0 takes a free one.")
@click.option(
    "--data", "folder", type=click.Path(path_type=Path, file_okay=False), default=None,
    help="Where everything is kept.  [default: ~/.local/share/cloudpar]",
)  # fmt: skip
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE",
    help="A limit of the master, such as running_packages=50; docs/operations.md lists them all.",
)  # fmt: skip
@click.option(
    "--new-secret", is_flag=True,
    help="Go on though the data folder's secret was lost: packages that have not ended fail, and results that were not "
    "read raise SealBroken.",
)  # fmt: skip
@isolation_options("own")
@json_option
def up(
    *, workers: int | None, port: int, folder: Path | None, settings: tuple[str, ...], new_secret: bool,
    as_json: bool, **limits: object,
) -> None:  # fmt: skip
    """Run a master and a worker on this machine; Ctrl-C lets running tasks finish and ends both."""
    figures = dict(map(_figure, settings))
    executors = programs.default_workers() if workers is None else workers
    where = (folder or default_folder()).absolute()
    check_writable(where)
    foreground = Foreground()
    with listen(port) as listening, suppress(EndRequested), ExitStack() as running:
        foreground.listen_for_signals()
        policy = RestartPolicy(must_start=True)
        master = programs.master(
            where, listening, {"settings": figures}, foreground.report, policy, new_secret=new_secret
        )
        running.enter_context(foreground.running(master))
        connection = read_connection(where)
        if executors:
            reach = {"endpoint": connection.endpoint, "token": connection.worker_token, "executors": executors}
            policy = RestartPolicy(runs_tasks=True, must_start=True)
            # The agent ends first. Until then the master runs, to take the agent's last results, and is restarted if it
            # dies.
            running.enter_context(foreground.running(programs.agent(reach | limits, foreground.report, policy)))
        announce(connection, where, executors, as_json=as_json)
        while True:
            foreground.wait_until_ready()


def _figure(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise click.BadParameter(f"{text!r}: write NAME=NUMBER, as in running_packages=50", param_hint="--set")
    return name, int(number) if number.is_integer() else number


def listen(port: int) -> socket.socket:
    """Open the socket for the master.

    Raises:
        PortInUse: Another process uses the port.
        CloudparError: The system does not let this process listen on the port.
    """
    try:
        return programs.listen(port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} is in use by another process (perhaps another `cloudpar up`): end that one, choose "
                f"another by --port, or take any free one by --port 0"
            ) from None
        raise CloudparError(f"cannot listen on port {port}: {error.strerror}; choose another by --port") from None
