"""Compresses what is stored, since DynamoDB charges for each write, read and removal of a row by the row's size."""

import zlib
from typing import Any

import msgspec

SMALL_BYTES = 700
"""Messages of fewer bytes are not compressed, because AWS charges every write as at least one kilobyte."""

LEVEL = 3
_ZLIB = b"\x78"
"""The first byte of compressed data. No uncompressed message starts with this byte, since each is a MessagePack map or
list."""

_to_bytes = msgspec.msgpack.Encoder().encode


def pack(message: Any) -> bytes:
    """Serialize a message, and compress the bytes as `compress` does."""
    return compress(_to_bytes(message))


def compress(body: bytes) -> bytes:
    """Compress a serialized message, if it has at least SMALL_BYTES and becomes smaller."""
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
