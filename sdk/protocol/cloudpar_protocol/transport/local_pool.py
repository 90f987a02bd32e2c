"""Sends calls to a pool's own master over its Unix socket; see `frames`."""

import socket
from typing import Final

from cloudpar_protocol import frames
from cloudpar_protocol.errors import NotFound

from .answer import Answer
from .interruption import Interruption
from .payload_folder import PayloadFolder
from .socket_pool import SocketPool, Timeouts

READ_BYTES: Final = 1 << 16
"""How much is read at once of an answer whose length is not known yet, in bytes: a small answer needs one call."""

PIECE_BYTES: Final = 1 << 20


class NoSocketYet(ConnectionError):
    """No master serves the socket: it is still starting, is of an earlier release, or could not make the socket."""


class LocalPool(SocketPool):
    """The connections to a pool's own master. Safe for use by any thread.

    Args:
        folder: The folder that contains the master's socket.
        token: The caller's token.
    """

    def __init__(self, folder: PayloadFolder, token: str) -> None:
        super().__init__()
        self._folder = folder
        self._first_frame = frames.call("", token.encode())

    def post(self, path: str, body: bytes, timeouts: Timeouts, interruption: Interruption | None = None) -> Answer:
        """Send one call and wait for its answer.

        Args:
            path: The path that the call has in HTTP.
            body: The encoded message.
            timeouts: The time limits for connecting, for sending the call, and for each part of the answer.
            interruption: Lets another thread end the call.

        Raises:
            NoSocketYet: No master serves the socket, so the call was not sent.
            OSError: There is no complete answer. The master may still have carried out the call.
            BadRequest: The folder belongs to another user.
        """
        interruption = interruption or Interruption()
        connection = self._take(timeouts.connect_s)
        try:
            interruption.watch(connection)
            connection.settimeout(timeouts.answer_s)
            try:
                connection.sendall(frames.call(path, body))
                sent = True
            except (BrokenPipeError, ConnectionResetError):
                # The master refuses a body that is too large, and closes the connection, before it has come.
                if self._closed or interruption.done:
                    raise
                sent = False
            answer = _read(connection)
            interruption.watch(None)
        except BaseException:
            connection.close()
            raise
        self._put_back(connection, keep=sent)
        return answer

    def _connect(self, connect_s: float) -> socket.socket:
        try:
            self._folder.check()
            connection = socket.socket(socket.AF_UNIX)
            try:
                connection.settimeout(connect_s)
                connection.connect(self._folder.socket)
            except BaseException:
                connection.close()
                raise
        except (OSError, NotFound) as error:
            raise NoSocketYet(str(error)) from None
        try:
            connection.sendall(self._first_frame)
        except BaseException:
            connection.close()
            raise
        return connection


def _read(connection: socket.socket) -> Answer:
    data = connection.recv(READ_BYTES)
    while len(data) < frames.ANSWER.size:
        data += _more(connection.recv(READ_BYTES)) if data else _more(data)
    status, size = frames.ANSWER.unpack_from(data)
    parts, missing = [data[frames.ANSWER.size :]], size + frames.ANSWER.size - len(data)
    while missing:
        parts.append(_more(connection.recv(min(missing, PIECE_BYTES))))
        missing -= len(parts[-1])
    return Answer(status, parts[0] if len(parts) == 1 else b"".join(parts))


def _more(data: bytes) -> bytes:
    if not data:
        raise ConnectionResetError("the connection ended before its answer")
    return data
