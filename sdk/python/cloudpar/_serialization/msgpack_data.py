"""Task data and results of task code by reference: MessagePack, which any language reads, and no pickle."""

from typing import IO, Any

from msgspec import msgpack

from cloudpar.errors import SerializationError

from .diagnosis import Call, culprit

_encoder = msgpack.Encoder()
_decoder = msgpack.Decoder()


def dumps_call(call: Call) -> bytes:
    """Serialize what a function is called with."""
    try:
        return _encoder.encode((call.args, call.kwargs))
    except Exception as error:
        raise refusal(error, call, f"an argument of {call.function}") from error


class Writer:
    """Writes many objects to one file, each on its own."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def append(self, value: object) -> None:
        """Add one object."""
        self._file.write(_encoder.encode(value))


def refusal(error: Exception, value: object, what: str) -> SerializationError:
    """The error that says which part of a value to send as something else."""
    name, _ = culprit(value, what, _encoder.encode)
    reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error) or type(error).__name__
    return SerializationError(
        f"{name} is not what MessagePack holds: {reason}; task code by reference takes None, booleans, numbers of at "
        "most 64 bits, texts, bytes, dates, and lists and dicts of these: make such values from it, or send the "
        "function itself instead of a reference"
    )


def loads(data: bytes) -> Any:
    """What `dumps` made of an object, or a worker of a result. Nothing in it is executed."""
    return _decoder.decode(data)
