"""Marks large buffers in a pickle, such as the content of an array, so that a reader can use them without a copy.

The pickle itself is complete: it contains each buffer, and every unpickler can read it. Unpicklers stop at the last
opcode. Behind this opcode follows a table of the buffers: the start and the end of each buffer (16 bytes), the number
of buffers (4 bytes), and MAGIC. All numbers are little-endian. A process that has mapped such a pickle into memory
unpickles it without the buffers, and passes parts of its mapping to the unpickler as the buffers.
"""

import pickle
import struct
from collections.abc import Callable
from pickle import PickleBuffer
from typing import IO, Any, Final

LARGE_BYTES: Final = 256 * 1024
"""From this size on, in bytes, a buffer is marked. A smaller buffer is copied faster than mapped."""
ALIGNMENT: Final = 64
"""A marked buffer starts at a multiple of this many bytes of its file. Numeric code is slower on memory that is not
aligned, or refuses it.
"""
_LEAST_ALIGNMENT: Final = 16
"""The alignment that every number of NumPy needs at most, in bytes."""
MAGIC: Final = b"\xf1cloudpar buffers\n"
"""The end of a pickle with marked buffers. Every other pickle ends with its last opcode, which is a dot."""

_PLACE: Final = struct.Struct("<QQ")
_COUNT: Final = struct.Struct("<I")
_HEADERS: Final = {pickle.BYTEARRAY8: 9, pickle.BINBYTES8: 9, pickle.BINBYTES: 5}
"""The opcodes before the content of a buffer, and their sizes with the length that follows the opcode."""
_PAIR: Final = pickle.NONE + pickle.POP
_TRIPLE: Final = pickle.BININT1 + b"\0" + pickle.POP
"""Opcodes without an effect, by which the content of a buffer moves to a multiple of ALIGNMENT."""


class Marker:
    """A file for a pickler that aligns large buffers, and remembers where they are.

    Python's pickler passes each large object to `write` as it is, and the opcode before it at the end of the call
    before. An object of type PickleBuffer is the content of an array or of another object that offers its memory.

    Args:
        file: Receives the pickles.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._held = b""
        self._places: list[tuple[int, int]] = []

    def write(self, data: Any) -> int:
        """Write a part of a pickle; see `io.RawIOBase`."""
        if type(data) is PickleBuffer and is_large(data):
            return self._write_buffer(data)
        self._flush()
        if not isinstance(data, bytes):  # its memory may change before the next call
            return self._file.write(data)
        self._held = data
        return len(data)

    def _write_buffer(self, data: PickleBuffer) -> int:
        held, self._held = self._held, b""
        content = data.raw()
        header = _header(held, content.nbytes)
        if not header:
            self._file.write(held)
            return self._file.write(content)
        self._file.write(held[: len(held) - header])
        opcode_at = self._file.tell()
        opcode_at += self._file.write(_no_op(-(opcode_at + header) % ALIGNMENT))
        self._file.write(held[len(held) - header :])
        count = self._file.write(content)
        self._places.append((opcode_at, opcode_at + header + content.nbytes))
        return count

    def _flush(self) -> None:
        if self._held:
            self._file.write(self._held)
            self._held = b""

    def end(self, start: int) -> None:
        """End a pickle that starts at this position of the file: if it has marked buffers, write their table."""
        self._flush()
        places, self._places = self._places, []
        if places:
            table = b"".join(_PLACE.pack(first - start, last - start) for first, last in places)
            self._file.write(table + _COUNT.pack(len(places)) + MAGIC)


def is_large(data: PickleBuffer) -> bool:
    """Whether a buffer is marked."""
    return memoryview(data).nbytes >= LARGE_BYTES


def _header(held: bytes, size: int) -> int:
    """Return how many bytes at the end of `held` announce a content of `size` bytes; 0 if they do not."""
    for opcode, length in _HEADERS.items():
        if held[-length:][:1] == opcode and int.from_bytes(held[1 - length :], "little") == size:
            return length
    return 0


def _no_op(size: int) -> bytes:
    """Return opcodes without an effect that take `size` bytes, or ALIGNMENT more if no opcodes take so few."""
    if size == 1:
        size += ALIGNMENT
    return _PAIR * (size // 2) if size % 2 == 0 else _TRIPLE + _PAIR * ((size - 3) // 2)


def is_marked(data: memoryview) -> bool:
    """Whether a pickle has marked buffers."""
    return data[-len(MAGIC) :].tobytes() == MAGIC


def loads(data: memoryview, at: int = 0, load: Callable[..., Any] = pickle.loads) -> Any:
    """Unpickle an object whose large buffers are the memory of `data`, without a copy.

    The object may write into this memory. A buffer at an address that is not a multiple of _LEAST_ALIGNMENT is copied.

    Args:
        data: The pickle, in memory that nothing else changes: the object refers to it.
        at: The address of the pickle, or its distance from an address that is a multiple of ALIGNMENT.
        load: The function that unpickles, called with the bytes of a pickle, and `buffers` if it has marked buffers.

    Raises:
        Exception: The pickle is not valid, or a class that it names raised the exception.
    """
    if not is_marked(data):
        return load(data)
    table_end = len(data) - len(MAGIC) - _COUNT.size
    (count,) = _COUNT.unpack_from(data, table_end)
    table = table_end - _PLACE.size * count
    stream, buffers, read = bytearray(), [], 0
    for first, last in _PLACE.iter_unpack(data[table:table_end]):
        opcode = bytes(data[first : first + 1])
        content = data[first + _HEADERS[opcode] : last]
        usable = content if (at + first + _HEADERS[opcode]) % _LEAST_ALIGNMENT == 0 else memoryview(bytearray(content))
        buffers.append(usable if opcode == pickle.BYTEARRAY8 else usable.toreadonly())
        stream += data[read:first]
        stream += pickle.NEXT_BUFFER
        read = last
    stream += data[read:table]
    return load(stream, buffers=buffers)
