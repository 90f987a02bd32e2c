import asyncio
from typing import Final

READ_BYTES: Final = 64 * 1024
"""The most bytes that the server reads from a connection at a time, and keeps while the request waits for its turn. By
itself, uvloop would read four times as many."""

_memory: Final = memoryview(bytearray(READ_BYTES))
"""All connections read into this memory. The server passes the data of each read on before it reads again."""


class SmallReads(asyncio.BufferedProtocol):
    """Passes the transport's calls on to another protocol object, with at most READ_BYTES of data at a time."""

    def __init__(self, protocol: asyncio.Protocol) -> None:
        self._protocol = protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass the call on."""
        self._protocol.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Pass the call on."""
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass the call on."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Pass the call on."""
        self._protocol.resume_writing()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next read."""
        del sizehint
        return _memory

    def buffer_updated(self, nbytes: int) -> None:
        """Pass the read data on."""
        self._protocol.data_received(bytes(_memory[:nbytes]))
