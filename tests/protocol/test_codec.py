"""Every message arrives unchanged in both media; unknown fields are ignored, and missing ones take their defaults."""

from typing import Any

import msgspec
import pytest

from cloudpar_protocol import codec
from cloudpar_protocol.errors import UnsupportedVersion
from cloudpar_protocol.limits import PROTOCOL_VERSION
from cloudpar_protocol.routes import ROUTES
from cloudpar_protocol_tools.samples import message_types, samples

TOPS: list[type[msgspec.Struct]] = [
    codec.ErrorReply,
    *(kind for route in ROUTES for kind in (route.request, route.reply)),
]
VERSIONED = [kind for kind in TOPS if "v" in kind.__struct_fields__]
MEDIA = [codec.MSGPACK, codec.JSON]


def test_every_message_carries_the_version() -> None:
    assert VERSIONED == TOPS
    assert all(codec.decode(b"\x80", kind).v == PROTOCOL_VERSION for kind in TOPS if not _required(kind))  # type: ignore[attr-defined]


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", TOPS, ids=lambda kind: kind.__name__)
def test_a_message_arrives_unchanged_and_its_unknown_fields_are_ignored(kind: type[msgspec.Struct], media: str) -> None:
    for message in samples(kind):
        body = _plain(message) | {"from_the_future": {"x": [1, None, {"y": "z"}]}, "": 1.5}
        assert codec.decode(codec.encode(body, media), kind, media) == message


@pytest.mark.parametrize("kind", TOPS, ids=lambda kind: kind.__name__)
def test_missing_optional_fields_take_their_defaults(kind: type[msgspec.Struct]) -> None:
    least = samples(kind)[0]
    body = {name: value for name, value in _plain(least).items() if name in _required(kind)}
    assert codec.decode(codec.encode(body), kind) == least


@pytest.mark.parametrize("kind", TOPS, ids=lambda kind: kind.__name__)
def test_each_required_field_is_named_when_it_is_missing(kind: type[msgspec.Struct]) -> None:
    body = _plain(samples(kind)[0])
    for name in _required(kind):
        without = {key: value for key, value in body.items() if key != name}
        with pytest.raises(Exception, match=name):
            codec.decode(codec.encode(without), kind)


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", VERSIONED, ids=lambda kind: kind.__name__)
def test_a_newer_version_is_named_as_such_even_if_the_rest_is_unreadable(
    kind: type[msgspec.Struct], media: str
) -> None:
    newer = PROTOCOL_VERSION + 1
    bodies: list[dict[str, Any]] = [
        _plain(samples(kind)[0]) | {"v": newer},
        {"v": newer},
        {"v": newer} | {name: {"of": "another type"} for name in kind.__struct_fields__ if name != "v"},
    ]
    for body in bodies:
        with pytest.raises(UnsupportedVersion, match="update"):
            codec.decode(codec.encode(body, media), kind, media)


def test_payload_bytes_travel_unchanged() -> None:
    start = message_types()["InlineData"]
    data = start([bytes(range(256))])
    assert bytes(range(256)) in codec.encode(data)
    assert codec.decode(codec.encode(data), start) == data


def _plain(message: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.msgpack.decode(codec.encode(message))
    return plain


def _required(kind: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(kind) if field.required}
