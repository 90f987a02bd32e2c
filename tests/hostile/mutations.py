"""Valid bodies that are damaged on the way: flipped bits, cut ends, odd values."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st

from cloudpar_protocol import codec
from cloudpar_protocol.routes import Route
from cloudpar_protocol.version import __version__
from cloudpar_protocol_tools import vectors

from .target import MEDIA, Knock

DEEP = 100_000

ODD: list[Any] = [
    None, True, -1, 0, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64 - 1, 0.5, -0.0, 1e308, 5e-324, "", "\x00", "x" * 5_000,
    "..", "../../etc/passwd", "a#1#2#3", "%00", "é漢😀", b"", b"\x00\xff", b"x" * 5_000, [], {}, [[]], [None] * 101,
    [0] * 5_000, {"": None}, {"v": 2}, {"type": "range"}, [1, 0], [[1, 0]], [[0, 10**7]] * 3, [[5, 5]],
]  # fmt: skip
"""Values of every type, at both ends of a field's range and beyond."""

_RAW = {
    codec.MSGPACK: [
        b"\xc1", b"\xdf\xff\xff\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc7\x08\x01",
        b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", b"\xd6\xff\x00\x00\x00\x00",
        b"\xcf" + b"\xff" * 8, b"\xa1\xff", b"\x91" * DEEP, b"\x81\xa1x" * DEEP,
    ],
    codec.JSON: [
        b"NaN", b"1e999", b"1" + b"0" * 400, b'"\\ud800"', b"\xff", b"\xef\xbb\xbf", b"//", b"\x00", b"-", b"tru",
        b"[" * DEEP, b'{"x":' * DEEP,
    ],
}  # fmt: skip
"""Raw text or bytes that replace a value."""

_HERE = "a value's place, that no message has"


@cache
def goldens(route: Route[Any, Any]) -> tuple[Any, ...]:
    """Return the requests of a route in this release's vectors, as plain values."""
    kept = vectors.read(vectors.FOLDER / f"v{__version__}.json").vectors
    bodies = [bytes.fromhex(vector.msgpack) for vector in kept if vector.type == route.request.__name__]
    return tuple(map(msgspec.msgpack.decode, bodies))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every part of a message, as its container and its key there."""
    names = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for name in names:
        yield value, name
        yield from _places(value[name])


def _copy(value: Any) -> Any:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))


@st.composite
def knocks(draw: st.DrawFn, route: Route[Any, Any], more: Sequence[bytes] = ()) -> Knock:
    """Draw a damaged request of a route. `more` are packed requests that may be damaged, beside the vectors."""
    seeds = goldens(route) + tuple(
        msgspec.msgpack.decode(knock.body) for knock in map(Knock.parse, more) if knock.route is route
    )
    media = draw(st.sampled_from(MEDIA))
    value = _copy(draw(st.sampled_from(seeds)))
    kind: Callable[..., bytes] = draw(st.sampled_from([_odd, _raw, _bytes, _bytes]))
    return Knock(route, media, kind(draw, value, media))


def _odd(draw: st.DrawFn, value: Any, media: str) -> bytes:
    """Replace, remove or add one to three values."""
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(value))
        if not places or draw(st.integers(0, 9)) == 0:
            value["from the future"] = _copy(draw(st.sampled_from(ODD)))
            continue
        holder, name = draw(st.sampled_from(places))
        if draw(st.integers(0, 4)) == 0:
            del holder[name]
        else:
            holder[name] = _copy(draw(st.sampled_from(ODD)))
    return codec.encode(value, media)


def _raw(draw: st.DrawFn, value: Any, media: str) -> bytes:
    """Replace one value by something that no encoder writes."""
    places = list(_places(value))
    if places:
        holder, name = draw(st.sampled_from(places))
        holder[name] = _HERE
    return codec.encode(value, media).replace(codec.encode(_HERE, media), draw(st.sampled_from(_RAW[media])))


def _bytes(draw: st.DrawFn, value: Any, media: str) -> bytes:
    """Flip bits, remove or repeat a piece, or append bytes."""
    body = bytearray(codec.encode(value, media))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(body) - 1)))
        match draw(st.integers(0, 4)):
            case 0 if body:
                body[at] ^= 1 << draw(st.integers(0, 7))
            case 1:
                del body[at:]
            case 2:
                del body[at : at + draw(st.integers(1, 9))]
            case 3:
                body[at:at] = body[at : at + draw(st.integers(1, 99))]
            case _:
                body[at:at] = draw(st.binary(max_size=9))
    return bytes(body)
