"""A package's committed results at the master, and what the master charged its account for them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import AwaitTasks, Cursor, PackageStatus, Progress
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.payloads import TaskResult

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Books:
    """All committed results of a package that has ended, with its last status."""

    results: list[TaskResult]
    last: PackageStatus

    @property
    def execute_us(self) -> int:
        """Return the execution time of the committed results."""
        return sum(result.duration_us for result in self.results)


class Master(Protocol):
    """A running master, on this machine or on AWS."""

    endpoint: str

    def admin(self) -> list[str]: ...

    def accounts(self) -> list[Account]: ...


@contextmanager
def connected(up: Master, token: str) -> Iterator[Connection]:
    """Open a connection with the SDK's retries."""
    connection = Connection(up.endpoint, token, RetryPolicy(PATIENCE_S))
    try:
        yield connection
    finally:
        connection.close()


def statuses(wire: Connection, package_id: str, cursor: int = 0) -> Iterator[PackageStatus]:
    """Yield the master's statuses of a package, one answer after the other."""
    while True:
        message = AwaitTasks(session="books", packages=[Cursor(package_id=package_id, cursor=cursor)], hold_s=HOLD_S)
        reply = wire.call(routes.AWAIT_TASKS, message, hold_s=HOLD_S)
        assert not reply.missing
        yield reply.packages[0]
        cursor = reply.packages[0].cursor
        Event().wait(reply.retry_after_s)  # a master that holds no request says when to ask again


def close_books(up: Master, token: str, package_id: str) -> Books:
    """Wait until a package has ended and its charge is final, and read all its pages."""
    results: list[TaskResult] = []
    with connected(up, token) as wire:
        for status in statuses(wire, package_id):
            results += status.results
            if status.settled and not status.more:
                return Books(results, status)
    raise AssertionError(package_id)


def progress(up: Master, token: str, package_id: str) -> Progress:
    """Return a package's progress."""
    with connected(up, token) as wire:
        message = AwaitTasks(session="books", packages=[Cursor(package_id=package_id, cursor=2**62)])
        return wire.call(routes.AWAIT_TASKS, message).packages[0].progress
