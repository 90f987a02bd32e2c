"""Keeps the agent of `cloudpar worker` alive, and waits for its master."""

from queue import Empty

import click

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar._local.restart_policy import RestartPolicy, fate
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import CloudparError, MasterUnreachable

from .process import Event, Events, Process, log_line

ENDED, REFUSED_START, TOKEN_REFUSED, UNREACHABLE, INTERRUPTED = 0, 2, 3, 4, 130
"""Exit statuses of the agent."""

FINAL = {ENDED, REFUSED_START, TOKEN_REFUSED, UNREACHABLE, INTERRUPTED}
"""Another start would end in the same way, or was not asked for."""

_TRY_S, _PAUSE_S = 2.0, 1.0
_REMIND = 20
"""While a worker waits for its master, one attempt in so many is logged: about one a minute."""


def role_of(endpoint: str, token: str, events: Events) -> str | None:
    """Ask the master for the role of a token as soon as it answers; None if a signal asks to end before that.

    Raises:
        RequestError: The master refuses the token.
    """
    attempts = 0
    while True:
        connection = Connection(endpoint, token, RetryPolicy(_TRY_S, first_contact_s=_TRY_S))
        try:
            return connection.call(routes.HELLO, Hello()).role
        except MasterUnreachable as error:
            if attempts % _REMIND == 0:
                log_line(f"waiting for a master at {endpoint} ({error.__cause__ or error})")
            attempts += 1
        finally:
            connection.close()
        try:
            if events.get(timeout=_PAUSE_S).what == "asked":
                return None
        except Empty:
            continue


class WorkerSupervisor:
    """One agent, from its start to its end; an agent that dies is started again.

    Args:
        agent: Not started yet.
        events: What the agent does, and signals to this command.
        endpoint: The master's, for messages.
    """

    def __init__(self, agent: Process, events: Events, endpoint: str) -> None:
        self._agent = agent
        self._events = events
        self._endpoint = endpoint
        self._restart_policy = RestartPolicy(runs_tasks=True)
        self._ready = self._draining = False

    def run(self) -> int:
        """Forward signals to the agent until it ends for good; its exit status, as a shell counts it.

        Raises:
            CloudparError: It cannot be kept alive.
        """
        self._agent.start()
        while True:
            match self._events.get():
                case Event("ready"):
                    self._ready = True
                    log_line(f"working for {self._endpoint}; Ctrl-C drains")
                case Event("asked"):
                    self._stop()
                case Event("ended", _, code):
                    if self._draining or code in FINAL:
                        if code < 0:
                            log_line(f"the worker ended ({fate(code)}) before it had handed in everything")
                        return code if code >= 0 else 128 - code
                    self._restart(code)

    def _stop(self) -> None:
        if not self._draining:
            click.echo("cloudpar: draining; Ctrl-C again stops at once", err=True)
        self._agent.stop(at_once=self._draining)
        self._draining = True

    def _restart(self, code: int) -> None:
        if not self._restart_policy.allow(code, was_ready=self._ready):
            raise CloudparError(f"the worker keeps dying ({fate(code)}); it says why above")
        log_line(f"warning: the worker ended ({fate(code)}); starting it again")
        self._ready = False
        self._agent.start()
