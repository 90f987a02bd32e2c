"""Ends a pool: by a shutdown, at the interpreter's exit, or by garbage collection.

A fork of this process ends neither the pool's tasks nor its master and worker, because these belong to the parent.
"""

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING

from cloudpar._arguments.pool_options import PoolOptions
from cloudpar._client.configuration import Configuration
from cloudpar._local.cluster import LocalCluster
from cloudpar._local.programs import default_workers
from cloudpar.errors import CloudparError, Forbidden, MasterUnreachable

from .exit_status import exit_as_interrupted

if TYPE_CHECKING:
    from .client import Client

CONTACT_S = 9.5
"""How long a new pool waits for the first answer of a master that it did not start, in seconds. The request's own
timeouts are not enough, because they do not limit the time for resolving a host name."""

LOCAL_CONTACT_S = 60.0
"""How long the client repeats a request to the pool's own master that has never answered, in seconds. This matters only
if the master hangs, because the pool learns of a crash at once.
"""

_living: "set[Lifetime]" = set()


class Lifetime:
    """Owns a pool's client and the pool's own master and worker, and ends them.

    While tasks are running, this object lives on even if the pool object is gone.

    Raises:
        ConfigurationError: The endpoint is not a URL, or the token has characters that a token cannot have.
        OSError: The system cannot start the pool's own master and worker, or cannot provide a folder or a socket.
    """

    def __init__(self, configuration: Configuration | None, options: PoolOptions) -> None:
        self._lock = threading.Lock()
        self._finished = False
        self._ready = threading.Event()
        self.cluster: LocalCluster | None = None
        if configuration is None:
            # The master and the worker start first. While they start up, this process imports the modules that it needs
            # to talk to them.
            self.cluster = LocalCluster(options.workers or default_workers(), self._failed, memory_mb=options.memory_mb)
            configuration = Configuration(self.cluster.endpoint, self.cluster.token, "the pool itself")
        try:
            self.endpoint = configuration.endpoint
            self.client = self._connect(configuration, options)
        except BaseException:
            if self.cluster is not None:
                self.cluster.close()
            raise
        self._ready.set()
        _living.add(self)

    def _connect(self, configuration: Configuration, options: PoolOptions) -> "Client":
        from cloudpar._client.connection import Connection
        from cloudpar._client.retry_policy import FIRST_CONTACT_S, RetryPolicy
        from cloudpar_protocol.transport.payload_folder import PayloadFolder

        from .client import Client

        first_contact_s = LOCAL_CONTACT_S if self.cluster else FIRST_CONTACT_S
        own_folder = PayloadFolder(self.cluster.data) if self.cluster else None
        policy = RetryPolicy(options.patience_s, first_contact_s)
        return Client(Connection(configuration.endpoint, configuration.token, policy, own_folder), options)

    def _failed(self, error: CloudparError) -> None:
        self._ready.wait()
        self.client.fail(error)

    def finish(self, *, wait: bool) -> None:
        """Stop everything after all tasks have finished. If `wait` is False, do so in the background."""
        if wait:
            self.client.wait()
            self._close()
        elif not self._finished:
            threading.Thread(target=self.finish, kwargs={"wait": True}, name="cloudpar-finish", daemon=True).start()

    def finish_at_exit(self, *, interrupted: bool) -> bool:
        """Wait for unfinished tasks, as other executors do, and stop everything.

        After Ctrl-C, cancel the tasks and print what they have cost.

        Args:
            interrupted: Whether the user has pressed Ctrl-C before this call.

        Returns:
            Whether the user pressed Ctrl-C, before or during this call.
        """
        try:
            try:
                if not interrupted:
                    self.client.wait()
            except KeyboardInterrupt:
                interrupted = True
            if interrupted:
                self.client.interrupt()
            self._close()
        except KeyboardInterrupt:  # a second Ctrl-C: exit at once; the pool's own processes end with this process
            interrupted = True
        return interrupted

    def _close(self) -> None:
        with self._lock:
            if self._finished:
                return
            self._finished = True
            self.client.close(acknowledge=self.cluster is None)
            if self.cluster is not None:
                self.cluster.close()
            _living.discard(self)

    def abandon(self) -> None:
        """Drop everything in a fork of this process, where the parent's threads and connections do not work."""
        self._finished = True
        if self.cluster is not None:
            self.cluster.abandon()


def first_contact(lifetime: Lifetime) -> None:
    """Ask the master whether the token belongs to an account. If not, or if no answer comes, shut the pool down.

    While the master answers that the client must wait, this function waits, without a limit.

    Raises:
        MasterUnreachable: No master answers within 10 s. Or the master asked the client to wait, and then did not
            answer for longer than `patience_s` of the pool.
        InvalidToken: The master does not know the token.
        Forbidden: The token is not the token of an account.
        CloudparError: The master refuses the request for another reason.
    """
    outcome: list[BaseException] = []

    def ask() -> None:
        try:
            role = lifetime.client.session.hello().role
            if role != "user":
                outcome.append(_wrong_role(role, lifetime.endpoint))
        except CloudparError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, name="cloudpar-hello", daemon=True)
    thread.start()
    thread.join(CONTACT_S)
    if lifetime.client.session.connection.policy.met:
        thread.join()  # the master has answered that the client must wait
    if thread.is_alive():
        outcome.append(MasterUnreachable(f"no master answers at {lifetime.endpoint}: check the endpoint"))
    if outcome:
        lifetime.finish(wait=True)
        raise outcome[0]


def _wrong_role(role: str, endpoint: str) -> Forbidden:
    return Forbidden(
        f"this is the {role} token of {endpoint}, and a pool needs an account's token: `cloudpar up` shows it as "
        "CLOUDPAR_TOKEN, and elsewhere the operator makes one by `cloudpar account create NAME`"
    )


def _finish_all() -> None:
    before = interrupted = _main_was_interrupted()
    for lifetime in list(_living):
        interrupted = lifetime.finish_at_exit(interrupted=interrupted)
    if interrupted and not before:
        exit_as_interrupted()


def _main_was_interrupted() -> bool:
    """Whether Ctrl-C has ended the main thread.

    The answer is False at an interactive prompt, which Ctrl-C does not end.
    """
    if hasattr(sys, "ps1") or sys.flags.interactive:
        return False
    return issubclass(getattr(sys, "last_type", None) or Exception, KeyboardInterrupt)


def _abandon_all() -> None:
    for lifetime in list(_living):
        lifetime.abandon()
    _living.clear()


atexit.register(_finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
