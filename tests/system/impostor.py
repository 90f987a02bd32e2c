"""A process that takes the port of a master which has ended, as a process that a task left behind can."""

import base64
import socket
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, Self

from msgspec import Struct

from cloudpar_protocol import codec, proofs
from cloudpar_protocol.errors import InvalidToken
from cloudpar_protocol.proofs import Prove, ProveReply

_READ_BYTES = 1 << 16
_WINDOW = 12
"""So long a part of a token does not occur in other data by chance."""


class Answer(NamedTuple):
    """A status, and a message in the form of the request, or bytes."""

    status: int
    body: bytes | Struct = b""

    def render(self, media: str) -> bytes:
        """Return the bytes of the answer."""
        body = self.body if isinstance(self.body, bytes) else codec.encode(self.body, media)
        head = f"HTTP/1.1 {self.status} -\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


WRONG_PROOF = Answer(200, ProveReply(nonce="0" * 32, proof="0" * 64))
ANSWERS = (
    None,  # only closes the connection
    Answer(404),
    WRONG_PROOF,
    Answer(401, codec.encode_error(InvalidToken("no such token"))),
    Answer(503),
    Answer(200, b"\x80"),
)
REFUSALS = (None, Answer(404), Answer(401), Answer(503))
"""Its answer to a request of a JavaScript client that is no challenge. The client would believe a success."""


class Impostor:
    """Answers each client's requests in the ways that an impostor may try, in turn.

    Args:
        port: The master's.
        answers: What it answers.

    Attributes:
        heard: All bytes of each connection, also those of a request that broke off.
        received: The requests, as they came.
        challenges: The number of challenges by key.
    """

    def __init__(self, port: int, answers: Sequence[Answer | None] = ANSWERS) -> None:
        self.heard: list[bytearray] = []
        self.received: list[bytes] = []
        self.challenges: Counter[str] = Counter()
        self._answers = answers
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", port))
        self._connections: list[tuple[socket.socket, threading.Thread]] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._connections.append((connection, thread))
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        heard = bytearray()
        self.heard.append(heard)
        with suppress(OSError), connection:
            for request in _requests(connection, heard):
                answer = self._note(request)
                if not answer:
                    return
                connection.sendall(answer)

    def _note(self, request: bytes) -> bytes:
        head, _, body = request.partition(b"\r\n\r\n")
        media = codec.JSON if b"application/json" in head.lower() else codec.MSGPACK
        with self._lock:
            self.received.append(request)
            key = codec.decode(body, Prove, media).key if is_challenge(request) else ""
            self.challenges[key] += 1
            answers = self._answers if key else REFUSALS
            answer = answers[self.challenges[key] % len(answers)]
        return b"" if answer is None else answer.render(media)

    def has_tried(self, token: str, answers: int = len(ANSWERS)) -> bool:
        """Return whether the holder of a token has got this many answers."""
        return self.challenges[proofs.key_of(proofs.hash_token(token))] >= answers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for connection, thread in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            thread.join()


def _requests(connection: socket.socket, heard: bytearray) -> Iterator[bytes]:
    """Yield whole requests, until the client closes the connection."""
    start = 0
    while True:
        while (end := heard.find(b"\r\n\r\n", start)) < 0:
            if not _hear(connection, heard):
                return
        sizes = [line for line in heard[start:end].lower().split(b"\r\n") if line.startswith(b"content-length:")]
        end += 4 + (int(sizes[0].partition(b":")[2]) if sizes else 0)
        while len(heard) < end:
            if not _hear(connection, heard):
                return
        yield bytes(heard[start:end])
        start = end


def _hear(connection: socket.socket, heard: bytearray) -> bool:
    part = connection.recv(_READ_BYTES)
    heard += part
    return bool(part)


def is_challenge(request: bytes) -> bool:
    """Whether a request is a challenge."""
    return request.startswith(f"POST {proofs.PATH} HTTP/1.1\r\n".encode())


def traces(tokens: Iterable[str]) -> list[bytes]:
    """Return what must not be in the bytes that an impostor hears: parts of tokens, also encoded in usual ways."""
    found = []
    for token in tokens:
        random = token.removeprefix("cloudpar_").encode()
        windows = [random[at : at + _WINDOW] for at in range(max(1, len(random) - _WINDOW + 1))]
        found += windows
        for window in windows:
            found += [window.hex().encode(), window.hex().upper().encode()]
            if len(window) % 3 == 0:
                found += [base64.b64encode(window), base64.urlsafe_b64encode(window)]
    return found
