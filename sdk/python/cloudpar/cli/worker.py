"""`cloudpar worker`: an agent for a master that is somewhere else."""

import click

from cloudpar._local.cluster import default_workers
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import Forbidden
from cloudpar_protocol.limits import EXECUTORS

from .access import connect, endpoint_option
from .executor_options import memory_option, threads_option
from .isolation import isolation_options
from .process import Events, Process, listen_for_signals
from .secret_options import overheard, secret_option
from .worker_supervisor import WorkerSupervisor, role_of

_WHERE = "`cloudpar up` prints it at a terminal, and keeps it as worker_token in connection.json of its data folder"


@click.command()
@endpoint_option
@secret_option("--token", envvar="CLOUDPAR_WORKER_TOKEN", help="The worker token. [env: CLOUDPAR_WORKER_TOKEN]")
@click.option("--executors", type=click.IntRange(1, EXECUTORS), default=None, help="Processes.  [default: one a core]")
@click.option("--wait", is_flag=True, help="If the master does not answer yet, wait for it, however long.")
@memory_option
@threads_option
@isolation_options("shared")
@click.pass_context
def worker(
    context: click.Context, *, endpoint: str | None, token: str | None, executors: int | None, wait: bool,
    memory_mb: int | None, threads_per_task: int | None, isolation: str, readable: tuple[str, ...],
    writable: tuple[str, ...],
) -> None:  # fmt: skip
    """Run tasks for a master until Ctrl-C or SIGTERM, which lets running tasks finish; a second one stops at once.

    An agent that dies is started again.
    """
    if not endpoint:
        raise click.UsageError("no endpoint: add --endpoint or CLOUDPAR_ENDPOINT (`cloudpar up` prints it)")
    if not token:
        raise click.UsageError(f"no worker token: add --token or CLOUDPAR_WORKER_TOKEN ({_WHERE})")
    events = Events()
    if wait:
        listen_for_signals(events)
        role = role_of(endpoint, token, events)
        if role is None:
            return
    else:
        # Asked here once, so that a wrong address or token is one clear line and not a log of the agent's retries.
        role = connect(endpoint, token).call(routes.HELLO, Hello()).role
    if role != "worker":
        raise Forbidden(f"this is a token for the role {role!r}: a worker needs the worker token ({_WHERE})")
    if isolation == "shared" and (who := overheard(token)):
        click.echo(
            f"cloudpar: warning: tasks can read the worker token among the arguments of {who}: leave out --token, and "
            "export CLOUDPAR_WORKER_TOKEN instead (for sudo: --preserve-env=CLOUDPAR_WORKER_TOKEN)",
            err=True,
        )
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
    context.exit(WorkerSupervisor(agent, events, endpoint).run())
