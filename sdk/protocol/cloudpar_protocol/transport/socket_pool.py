"""Keeps the connections to one address open between requests, and ends them when the process wants no more answers."""

import select
import socket
from abc import ABC, abstractmethod
from threading import Lock
from typing import Final, NamedTuple
from weakref import WeakSet

from .interruption import shut

KEPT: Final = 8
"""The most idle connections that stay open; further connections are closed after use."""


class Timeouts(NamedTuple):
    """The time for which one attempt waits, in seconds: for a connection, and for each part sent or received."""

    connect_s: float
    answer_s: float


class SocketPool(ABC):
    """The connections to one address. Safe for use by any thread. Each connection has one request at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._idle: list[socket.socket] = []
        self._all: WeakSet[socket.socket] = WeakSet()
        self._closed = False

    @abstractmethod
    def _connect(self, connect_s: float) -> socket.socket:
        """Open a connection. Raises an OSError if that is not possible."""

    def _take(self, connect_s: float) -> socket.socket:
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None:
                return self._new(connect_s)
            if not _has_something(connection):
                return connection
            connection.close()  # readable while idle: the server has closed it

    def _new(self, connect_s: float) -> socket.socket:
        connection = self._connect(connect_s)
        with self._lock:
            if not self._closed:
                self._all.add(connection)
                return connection
        connection.close()
        raise ConnectionAbortedError("this side closes its connections")

    def _put_back(self, connection: socket.socket, *, keep: bool) -> None:
        with self._lock:
            if keep and not self._closed and len(self._idle) < KEPT:
                self._idle.append(connection)
                return
        connection.close()

    def drop_idle(self) -> None:
        """Close the idle connections, so that the next requests use new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def hang_up(self) -> None:
        """Close the connections for writing, so that the server sees that no more requests come.

        Answers to earlier requests can still be read. A request that is not sent yet raises an OSError, and so does
        each later request.
        """
        self._end(socket.SHUT_WR)

    def close(self) -> None:
        """End all requests, in any thread, with an OSError; later requests raise an OSError, too."""
        self._end(socket.SHUT_RDWR)

    def _end(self, how: int) -> None:
        with self._lock:
            self._closed = True  # a thread that is opening a connection now is refused by `_new`
            idle, self._idle = self._idle, []
            connections = list(self._all)
        for connection in connections:
            shut(connection, how)
        for connection in idle:
            connection.close()


def _has_something(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))
