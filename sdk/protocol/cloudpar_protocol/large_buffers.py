"""Marks large buffers in a pickle, such as the content of an array, so that a reader can use them without a copy.

The pickle itself is complete: it contains each buffer, and every unpickler can read it. Unpicklers stop at the last
opcode. Zeros and a table of the buffers follow this opcode: the start and the end of each buffer (16 bytes), the number
of buffers (4 bytes), and MAGIC. All numbers are little-endian. A process that has mapped such a pickle into memory
unpickles it without the buffers, and passes parts of its mapping to the unpickler as the buffers.
"""

import io
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
        file: Receives the pickles. It can seek.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._write = file.write
        self._last: Any = b""
        self._places: list[tuple[int, int]] = []

    def write(self, data: Any) -> int:
        """Write a part of a pickle; see `io.RawIOBase`."""
        if type(data) is PickleBuffer and is_large(data):
            return self._write_buffer(data)
        self._last = data
        return self._write(data)

    def _write_buffer(self, data: PickleBuffer) -> int:
        content, last = data.raw(), self._last
        header = _header(last, content.nbytes) if isinstance(last, bytes) else 0
        if header:
            opcode_at = self._file.seek(-header, io.SEEK_CUR)
            opcode_at += self._write(_no_op(-(opcode_at + header) % ALIGNMENT))
            self._write(last[len(last) - header :])
            self._places.append((opcode_at, opcode_at + header + content.nbytes))
        return self._write(content)

    def end(self, start: int) -> None:
        """End a pickle that starts at this position of the file: if it has marked buffers, write their table."""
        if self._places:
            places = b"".join(_PLACE.pack(first - start, last - start) for first, last in self._places)
            table = places + _COUNT.pack(len(self._places)) + MAGIC
            # If this pickle starts at a multiple of ALIGNMENT, the next one does, too.
            self._write(bytes(-(self._file.tell() - start + len(table)) % ALIGNMENT) + table)
            self.forget()

    def forget(self) -> None:
        """Forget the buffers since the last end: what was written of this pickle is not part of the file any more."""
        self._places.clear()
        self._last = b""


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


def loads(data: memoryview, at: int = 0, load: Callable[..., Any] = pickle.loads, *, least: int = 0) -> Any:
    """Unpickle an object whose large buffers are the memory of `data`, without a copy.

    The object may write into this memory. A buffer at an address that is not a multiple of _LEAST_ALIGNMENT is copied.

    Args:
        data: The pickle, in memory that nothing else changes: the object refers to it.
        at: The address of the pickle, or its distance from an address that is a multiple of ALIGNMENT.
        load: The function that unpickles, called with the bytes of a pickle, and `buffers` if it has marked buffers.
        least: Buffers of fewer bytes are copied. One that is kept would otherwise keep all of the memory.

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
        is_aligned = (at + first + _HEADERS[opcode]) % _LEAST_ALIGNMENT == 0
        usable = content if is_aligned and len(content) >= least else memoryview(bytearray(content))
        buffers.append(usable if opcode == pickle.BYTEARRAY8 else usable.toreadonly())
        stream += data[read:first]
        stream += pickle.NEXT_BUFFER
        read = last
    stream += data[read:table]
    return load(stream, buffers=buffers)
