"""A process that takes the port of a master which has ended, as a process that a task left behind can."""

import socket
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Self

from cloudpar_protocol import codec, proofs
from cloudpar_protocol.errors import InvalidToken
from cloudpar_protocol.proofs import Prove, ProveReply


def _answer(status: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status} -\r\nContent-Type: {codec.MSGPACK}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


WRONG_PROOF = _answer(200, codec.encode(ProveReply(nonce="0" * 32, proof="0" * 64)))
ANSWERS = (
    b"",  # only closes the connection
    _answer(404, b""),
    WRONG_PROOF,
    _answer(401, codec.encode_error(InvalidToken("no such token"))),
    _answer(503, b""),
    _answer(200, b"\x80"),
)


class Impostor:
    """Answers each client's requests in the ways that an impostor may try, in turn.

    Args:
        port: The master's.
        answers: What it answers.

    Attributes:
        received: The requests, as they came.
        challenges: The number of challenges by key.
    """

    def __init__(self, port: int, answers: Sequence[bytes] = ANSWERS) -> None:
        self.received: list[bytes] = []
        self.challenges: Counter[str] = Counter()
        self._answers = answers
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", port))
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            while True:
                head = b""
                while not head.endswith(b"\r\n\r\n"):
                    line = stream.readline()
                    if not line:
                        return
                    head += line
                sizes = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
                answer = self._note(head, stream.read(int(sizes[0].partition(b":")[2])) if sizes else b"")
                if not answer:
                    return
                connection.sendall(answer)

    def _note(self, head: bytes, body: bytes) -> bytes:
        with self._lock:
            self.received.append(head + body)
            key = codec.decode(body, Prove).key if head.startswith(f"POST {proofs.PATH} ".encode()) else ""
            self.challenges[key] += 1
            return self._answers[self.challenges[key] % len(self._answers)]

    def has_tried_all(self, token: str) -> bool:
        """Return whether the holder of a token has got all answers."""
        return self.challenges[proofs.key_of(proofs.hash_token(token))] >= len(ANSWERS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
