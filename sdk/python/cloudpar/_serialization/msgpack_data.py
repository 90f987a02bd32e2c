"""Serializes task data and results of references as MessagePack, which any language can read."""

from typing import IO, Any

from msgspec import msgpack

from cloudpar.errors import SerializationError

from .diagnosis import Call, culprit

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder()


def dumps_call(call: Call) -> bytes:
    """Serialize the arguments of a call.

    Raises:
        SerializationError: MessagePack cannot hold an argument; the text names the part.
    """
    try:
        return _encoder.encode((call.args, call.kwargs))
    except Exception as error:
        raise refusal(error, call, f"an argument of {call.function}") from error


class Writer:
    """Writes several objects to one file, each as a MessagePack document of its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def append(self, value: object) -> None:
        """Write one object. This raises the errors of the encoder, which `refusal` turns into errors for users."""
        self._file.write(_encoder.encode(value))


def refusal(error: Exception, value: object, what: str) -> SerializationError:
    """Return the error for a value that MessagePack cannot hold. The error names the part and what to send instead."""
    name, _ = culprit(value, what, _encoder.encode)
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error) or type(error).__name__
    return SerializationError(
        f"{name} is not what MessagePack holds: {reason}; task code by reference takes None, booleans, numbers of at "
        "most 64 bits, texts, bytes, dates, and lists and dicts of these: make such values from it, or send the "
        "function itself instead of a reference"
    )


def loads(data: bytes) -> Any:
    """Read one object; nothing in the data is executed."""
    return _decoder.decode(data)
