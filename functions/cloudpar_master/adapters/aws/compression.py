"""Compresses what is stored, since DynamoDB charges for each write, read and removal of a row by the row's size."""

import zlib
from typing import Any

import msgspec

SMALL_BYTES = 700
"""Messages of fewer bytes are not compressed: AWS charges every write as one kilobyte at least."""

LEVEL = 3
_ZLIB = b"\x78"
"""The first byte of compressed data. No stored message starts with it, since these are MessagePack maps and lists."""

_to_bytes = msgspec.msgpack.Encoder().encode


def pack(message: Any) -> bytes:
    """Serialize a message, and compress it if that makes it smaller and it has at least SMALL_BYTES."""
    return compress(_to_bytes(message))


def compress(body: bytes) -> bytes:
    """Compress a serialized message if that makes it smaller and it has at least SMALL_BYTES."""
    if len(body) < SMALL_BYTES:
        return body
    compressed = zlib.compress(body, LEVEL)
    return compressed if len(compressed) < len(body) else body


def unpack(body: bytes) -> bytes:
    """Return the serialized message; `body` may be compressed or not.

    Raises:
        ValueError: The compressed data is damaged.
    """
    if body[:1] != _ZLIB:
        return body
    try:
        return zlib.decompress(body)
    except zlib.error as error:
        raise ValueError(str(error)) from None
