"""Decodes task data and encodes results in an executor, by the package's codec."""

import pickle
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec import msgpack

from cloudpar_protocol.payloads import Codec
from cloudpar_protocol.seals import is_pickle

from . import failures
from .result_file import ResultFile, serialize


class Serialization(NamedTuple):
    """One codec.

    Attributes:
        decode: Decodes the data of a task.
        encode: Encodes the value of a task, or raises.
        encode_large: Encodes as `encode`, but may return a large value in a file.
        encode_error: Encodes an exception of a task, and returns its bytes and "". If only the text of the exception
            can travel, the function returns None and the reason. The reason is "" if the codec encodes no exceptions.
        refusal: Makes the error message about a value that cannot be encoded, from the type of the value and the
            exception of `encode`.
    """

    decode: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    encode_large: Callable[[Any], bytes | ResultFile]
    encode_error: Callable[[BaseException], tuple[bytes | None, str]]
    refusal: Callable[[type, BaseException], str]


_encode: Final = msgpack.Encoder().encode


def _message_pack(value: Any) -> bytes:
    """Encode a value. A msgspec.Raw may hold any bytes, so bytes that clients would take for a pickle are refused."""
    data = _encode(value)
    if is_pickle(data):
        raise ValueError("its bytes could be read as a pickle")
    return data


def _no_message_pack(value_type: type, error: BaseException) -> str:
    name, why = failures.type_name(value_type), failures.line(error)
    return failures.bounded(
        f"the result, of type {name}, is not what MessagePack holds ({why}): "
        "return None, booleans, numbers of at most 64 bits, texts, bytes, dates, or lists and dicts of these (an array "
        "or a number of NumPy by its tolist())"
    )


SERIALIZATIONS: Final[dict[Codec, Serialization]] = {
    "pickle": Serialization(pickle.loads, failures.serialize, serialize, failures.portable, failures.unpicklable),
    "msgpack": Serialization(
        msgpack.Decoder().decode, _message_pack, _message_pack, lambda _: (None, ""), _no_message_pack
    ),
}
