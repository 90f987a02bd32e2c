"""`cloudpar worker`: an agent for a master that is somewhere else."""

import click

from cloudpar.local import default_workers
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import Forbidden

from .access import connect, endpoint_option
from .executor_options import memory_option, threads_option
from .isolation import isolation_options
from .process import Event, Events, Process, listen_for_signals
from .secret_options import overheard, secret_option


@click.command()
@endpoint_option
@secret_option("--token", envvar="CLOUDPAR_WORKER_TOKEN", help="The worker token. [env: CLOUDPAR_WORKER_TOKEN]")
@click.option("--executors", type=click.IntRange(min=1), default=None, help="Processes.  [default: one a core]")
@memory_option
@threads_option
@isolation_options("shared")
@click.pass_context
def worker(
    context: click.Context, *, endpoint: str | None, token: str | None, executors: int | None, memory_mb: int | None,
    threads_per_task: int | None, isolation: str, readable: tuple[str, ...], writable: tuple[str, ...],
) -> None:  # fmt: skip
    """Run tasks for a master until Ctrl-C or SIGTERM, which lets running tasks finish; a second one stops at once."""
    if not endpoint:
        raise click.UsageError("no endpoint: add --endpoint or CLOUDPAR_ENDPOINT (`cloudpar up` prints it)")
    if not token:
        raise click.UsageError("no worker token: add --token or CLOUDPAR_WORKER_TOKEN (`cloudpar up` prints it)")
    # Asked here once, so that a wrong address or token is one clear line and not a log of the agent's retries.
    role = connect(endpoint, token).call(routes.HELLO, Hello()).role
    if role != "worker":
        raise Forbidden(f"this is a token for the role {role!r}: a worker needs the worker token, which `up` prints")
    if isolation == "shared" and (who := overheard(token)):
        click.echo(
            f"cloudpar: warning: tasks can read the worker token among the arguments of {who}: leave out --token, and "
            "export CLOUDPAR_WORKER_TOKEN instead (for sudo: --preserve-env=CLOUDPAR_WORKER_TOKEN)",
            err=True,
        )
    events = Events()
    listen_for_signals(events)
    # By standard input, not as an argument: every user of the machine may read the arguments of a process.
    greeting = {
        "endpoint": endpoint.rstrip("/"),
        "token": token,
        "executors": executors or default_workers(),
        "memory_mb": memory_mb,
        "threads_per_task": threads_per_task,
        "isolation": isolation,
        "readable": readable,
        "writable": writable,
    }
    agent = Process("worker", ["cloudpar_worker", "--stdin"], greeting, events)
    agent.start()
    context.exit(_follow(agent, events, endpoint))


def _follow(agent: Process, events: Events, endpoint: str) -> int:
    """Forward signals to the agent until it ends; its exit status, as a shell counts it."""
    draining = False
    while True:
        match events.get():
            case Event("ready"):
                click.echo(f"cloudpar: working for {endpoint}; Ctrl-C drains", err=True)
            case Event("asked"):
                if not draining:
                    click.echo("cloudpar: draining; Ctrl-C again stops at once", err=True)
                agent.stop(at_once=draining)
                draining = True
            case Event("ended", _, code):
                return code if code >= 0 else 128 - code
