"""Lets one thread end a request of another thread."""

import contextlib
import socket
from threading import Lock


class Interruption:
    """Lets another thread end one request, whether it is under way or not sent yet.

    Attributes:
        done: Whether `interrupt` was called. The request then raises an OSError, unless it already has its answer.
    """

    def __init__(self) -> None:
        self.done = False
        self._connection: socket.socket | None = None
        self._lock = Lock()

    def interrupt(self) -> None:
        """Make the request raise an OSError."""
        with self._lock:
            self.done = True
            if self._connection is not None:
                shut(self._connection, socket.SHUT_RDWR)

    def watch(self, connection: socket.socket | None) -> None:
        """Record the connection that the request uses now; None: the request no longer uses a connection.

        Raises:
            ConnectionAbortedError: The request is already interrupted.
        """
        with self._lock:
            if self.done and connection is not None:
                raise ConnectionAbortedError("the request was interrupted")
            self._connection = connection


def shut(connection: socket.socket, how: int) -> None:
    """Shut down a connection that another thread may be using."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, how)  # unlike SSLSocket's own method, it interrupts a thread that reads
