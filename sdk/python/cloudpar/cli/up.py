"""`cloudpar up`: a master and an agent on this machine, in the foreground."""

import errno
import math
import socket
from collections.abc import Mapping
from pathlib import Path

import click

from cloudpar._local.cluster import BACKLOG, default_workers
from cloudpar._local.restart_policy import RestartPolicy, fate
from cloudpar_protocol.errors import CloudparError
from cloudpar_protocol.limits import EXECUTORS

from .access import json_option
from .data_folder import check_writable, default_folder, read_connection
from .executor_options import memory_option, threads_option
from .exit_codes import PortInUse
from .isolation import isolation_options
from .process import Event, Events, Process, listen_for_signals, log_line
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
    help="A figure of the master, such as running_packages=50; docs/operations.md lists the limits.",
)  # fmt: skip
@click.option(
    "--new-secret", is_flag=True,
    help="Go on though the data folder's secret was lost: packages that have not ended fail, and results that were not "
    "read raise SealBroken.",
)  # fmt: skip
@isolation_options("own")
@json_option
def up(
    *, workers: int | None, memory_mb: int | None, threads_per_task: int | None, port: int,
    folder: Path | None, settings: tuple[str, ...], new_secret: bool, as_json: bool, **confinement: object,
) -> None:  # fmt: skip
    """Run a master and a worker on this machine; Ctrl-C ends them in good order."""
    figures = dict(map(_figure, settings))
    executors = default_workers() if workers is None else workers
    where = (folder or default_folder()).absolute()
    check_writable(where)
    with listen(port) as listening:
        limits = {"memory_mb": memory_mb, "threads_per_task": threads_per_task} | confinement
        Cluster(where, listening, executors, limits, settings=figures, new_secret=new_secret, as_json=as_json).run()


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
    """The socket on which the master will listen, bound here: it stays while a crashed master starts again.

    Raises:
        PortInUse: Another process has it.
    """
    try:
        return socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"port {port} is in use by another process (perhaps another `cloudpar up`): end that one, choose "
                f"another by --port, or take any free one by --port 0"
            ) from None
        raise CloudparError(f"cannot listen on port {port}: {error.strerror}; choose another by --port") from None


class Cluster:
    """The two processes, from their start to their end."""

    def __init__(
        self, folder: Path, listening: socket.socket, executors: int, limits: Mapping[str, object], *,
        settings: Mapping[str, float], new_secret: bool, as_json: bool,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._listening = listening
        self._executors = executors
        self._limits = limits
        self._as_json = as_json
        self._events: Events = Events()
        self._restart_policies = {"master": RestartPolicy(), "worker": RestartPolicy(runs_tasks=True)}
        self._ready: set[str] = set()
        options = ["--data", str(folder), "--listen-fd", str(listening.fileno()), "--stdin"]
        # Harmless when a crashed master starts again: by then the database knows the new one.
        options += ["--new-secret"] if new_secret else []
        self._processes = {
            "master": Process("master", ["cloudpar_master", *options], {"settings": dict(settings)}, self._events)
        }

    def run(self) -> None:
        """Start, announce, watch; and end everything when a signal asks for it.

        Raises:
            CloudparError: A process cannot be kept alive.
        """
        listen_for_signals(self._events)
        try:
            self._start("master")
            self._until_ready("master")
            connection = read_connection(self._folder)
            if self._executors:
                greeting = {
                    "endpoint": connection.endpoint,
                    "token": connection.worker_token,
                    "executors": self._executors,
                    **self._limits,
                }
                self._processes["worker"] = Process("worker", ["cloudpar_worker", "--stdin"], greeting, self._events)
                self._start("worker")
                self._until_ready("worker")
            announce(connection, self._folder, self._executors, as_json=self._as_json)
            self._watch()
        except _Asked:
            pass
        finally:
            self._stop()

    def _start(self, name: str) -> None:
        self._ready.discard(name)
        self._processes[name].start((self._listening.fileno(),) if name == "master" else ())

    def _until_ready(self, name: str) -> None:
        while True:
            event = self._next()
            if event.what == "ready" and event.name == name:
                return
            if event.what == "ended" and event.name != name:
                self._restart(event)
            elif event.what == "ended":
                del self._processes[name]
                raise CloudparError(f"the {name} ended before it was ready ({fate(event.code)}); it says why above")

    def _watch(self) -> None:
        while True:
            event = self._next()
            if event.what == "ended":
                self._restart(event)

    def _restart(self, event: Event) -> None:
        if not self._restart_policies[event.name].allow(event.code, was_ready=event.name in self._ready):
            del self._processes[event.name]
            raise CloudparError(f"the {event.name} keeps dying ({fate(event.code)}); it says why above")
        log_line(f"warning: the {event.name} ended ({fate(event.code)}); starting it again")
        self._start(event.name)

    def _next(self) -> Event:
        event = self._events.get()
        if event.what == "asked":
            raise _Asked
        if event.what == "ready":
            self._ready.add(event.name)
        return event

    def _stop(self) -> None:
        """The worker first: it hands in what it has to a master that is still there."""
        for name in ("worker", "master"):
            process = self._processes.get(name)
            if process is None:
                continue
            if name == "worker":
                click.echo("cloudpar: draining; Ctrl-C again stops at once", err=True)
            process.stop()
            while (event := self._events.get()) != Event("ended", name, event.code):
                if event.what == "asked":
                    process.stop(at_once=True)
                elif event.what == "ended" and event.name == "master":
                    self._start("master")  # it crashed while the worker drains, which needs it


class _Asked(Exception):
    """A signal asks this command to end."""
