"""`cloudpar worker`: runs an agent for a master that another program has started, usually on another machine."""

from contextlib import suppress
from queue import Empty

import click

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar._local import programs
from cloudpar._local.child import Child
from cloudpar._local.restart_policy import RestartPolicy, fate
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import CloudparError, Forbidden, MasterUnreachable
from cloudpar_protocol.limits import EXECUTORS

from .access import connect, endpoint_option
from .executor_options import memory_option, threads_option
from .foreground import EndRequested, Foreground, log_line
from .isolation import isolation_options
from .secret_options import overheard, secret_option

_WHERE = (
    "`cloudpar worker-token create` makes one; `cloudpar up` keeps one as worker_token in connection.json of its data "
    "folder"
)

FINAL = {0, 2, 3, 4, 130}
"""Exit statuses after which an agent is not restarted: it has drained, refused to start, had its token refused, could
not publish its results, or was interrupted."""

_TRY_S, _PAUSE_S = 2.0, 1.0
_REMIND = 20
"""While a worker waits for its master, one of _REMIND attempts is logged, which is about one per minute."""


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
    context: click.Context, /, *, endpoint: str | None, token: str | None, executors: int | None, wait: bool,
    **limits: object,
) -> None:  # fmt: skip
    """Run tasks for a master until Ctrl-C or SIGTERM, which lets running tasks finish; a second signal stops them.

    An agent that dies is started again.
    """
    if not endpoint:
        raise click.UsageError("no endpoint: add --endpoint or CLOUDPAR_ENDPOINT (`cloudpar up` prints it)")
    if not token:
        raise click.UsageError(f"no worker token: add --token or CLOUDPAR_WORKER_TOKEN ({_WHERE})")
    foreground = Foreground()
    if wait:
        foreground.listen_for_signals()
        try:
            role = _wait_for_role(endpoint, token, foreground)
        except EndRequested:
            return
    else:
        # Send one request before the agent starts, so that a wrong address or token gives one clear line, not a log of
        # retries.
        role = connect(endpoint, token).call(routes.HELLO, Hello()).role
    if role != "worker":
        raise Forbidden(f"this is a token for the role {role!r}: a worker needs the worker token ({_WHERE})")
    if limits["isolation"] == "shared" and (who := overheard(token)):
        click.echo(
            f"cloudpar: warning: tasks can read the worker token among the arguments of {who}: leave out --token, and "
            "export CLOUDPAR_WORKER_TOKEN instead (for sudo: --preserve-env=CLOUDPAR_WORKER_TOKEN)",
            err=True,
        )
    foreground.listen_for_signals()
    executors = executors or programs.default_workers()
    settings = {"endpoint": endpoint.rstrip("/"), "token": token, "executors": executors} | limits
    agent = programs.agent(settings, foreground.report, RestartPolicy(runs_tasks=True, final=FINAL))
    context.exit(_run(agent, foreground, endpoint))


def _wait_for_role(endpoint: str, token: str, foreground: Foreground) -> str:
    """Ask the master for the role of a token, until it answers.

    Raises:
        EndRequested: A signal asked this command to end.
        RequestError: The master refuses the request, for example because it does not know the token.
        ConfigurationError: The endpoint is not a URL, or the token has characters that no token has.
    """
    attempts = 0
    while True:
        connection = Connection(endpoint, token, RetryPolicy(_TRY_S, first_contact_s=_TRY_S))
        try:
            return connection.call(routes.HELLO, Hello()).role
        except MasterUnreachable as error:
            if attempts % _REMIND == 0:
                log_line(f"waiting for a master at {endpoint} ({error.__context__ or error})")
            attempts += 1
        finally:
            connection.close()
        with suppress(Empty):
            foreground.next(_PAUSE_S)


def _run(agent: Child, foreground: Foreground, endpoint: str) -> int:
    """Run an agent until it ends and is not restarted, or until a signal drains it.

    Returns:
        The agent's exit status; 128 plus the number of the signal if a signal ended it.

    Raises:
        CloudparError: The agent has ended several times in a short time, or the system cannot start it again.
        OSError: The first start of the agent failed.
    """
    agent.start()
    try:
        while (event := foreground.next()).what == "ready":
            log_line(f"working for {endpoint}; Ctrl-C drains")
    except EndRequested:
        code = foreground.end(agent)
        if code < 0:
            log_line(f"the worker ended ({fate(code)}) before it had handed in everything")
        return code if code >= 0 else 128 - code
    if event.code not in FINAL:
        raise CloudparError(f"the worker keeps dying ({fate(event.code)}); it says why above")
    return event.code
