"""Hostile bodies: each is a BadRequest or a message, never another exception or an endless loop."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, UnsupportedVersion
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.routes import CANCEL_TASKS, PUBLISH_RESULTS, ROUTES, START_TASKS
from cloudpar_protocol_tools.samples import samples

REQUESTS = [route.request for route in ROUTES]
MEDIA = [codec.MSGPACK, codec.JSON]
DEEP = 100_000


def attempt(body: bytes, kind: type[Any], media: str) -> Any:
    """The message, or None for the two errors that a body may cause."""
    try:
        return codec.decode(body, kind, media)
    except (BadRequest, UnsupportedVersion):
        return None


@pytest.mark.parametrize("media", MEDIA)
@given(body=st.binary(max_size=200))
def test_random_bytes_are_a_message_or_a_bad_request(media: str, body: bytes) -> None:
    for kind in REQUESTS:
        attempt(body, kind, media)


@given(text=st.text(max_size=200))
def test_random_json_text_is_a_message_or_a_bad_request(text: str) -> None:
    for kind in REQUESTS:
        attempt(text.encode(errors="surrogatepass"), kind, codec.JSON)


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_a_truncated_message_is_a_bad_request(kind: type[msgspec.Struct], media: str) -> None:
    body = codec.encode(samples(kind)[-1], media)
    for size in range(len(body)):
        with pytest.raises(BadRequest, match=kind.__name__):
            codec.decode(body[:size], kind, media)


@pytest.mark.parametrize("media", MEDIA)
@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_a_message_with_a_changed_byte_is_a_message_or_a_bad_request(
    kind: type[msgspec.Struct], media: str, data: st.DataObject
) -> None:
    body = bytearray(codec.encode(data.draw(st.sampled_from(samples(kind))), media))
    for _ in range(data.draw(st.integers(1, 5))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    message = attempt(bytes(body), kind, media)
    if message is not None:  # an accepted message can be encoded again
        codec.encode(message)


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("media", "body"),
    [
        (codec.JSON, b'{"x":' + b"[" * DEEP),
        (codec.JSON, b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}"),
        (codec.JSON, b'{"x":' * DEEP + b"1" + b"}" * DEEP),
        (codec.JSON, b"[" * DEEP),
        (codec.MSGPACK, b"\x81\xa1x" * DEEP),
        (codec.MSGPACK, b"\x81\xa1x" + b"\x91" * DEEP + b"\x01"),
        (codec.MSGPACK, b"\x91" * DEEP),
    ],
    ids=["open lists", "closed lists", "objects", "bare lists", "maps", "arrays", "bare arrays"],
)
def test_deeply_nested_bodies_do_not_crash(kind: type[msgspec.Struct], media: str, body: bytes) -> None:
    attempt(body, kind, media)  # refused, or (where the stack is deep enough) skipped as an unknown field; no crash


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    ("media", "body"),
    [
        (codec.MSGPACK, b"\xdf\xff\xff\xff\xff"),
        (codec.MSGPACK, b"\x81\xdb\xff\xff\xff\xff"),
        (codec.MSGPACK, b"\x81\xa1x\xdd\xff\xff\xff\xff"),
        (codec.MSGPACK, b"\x81\xa1x\xc6\xff\xff\xff\xff"),
        (codec.MSGPACK, b"\x81\xa7uploads\xdd\xff\xff\xff\xff"),
    ],
    ids=["map", "key", "unknown array", "unknown bytes", "array"],
)
def test_lengths_beyond_the_end_of_the_body_are_bad_requests(
    kind: type[msgspec.Struct], media: str, body: bytes
) -> None:
    with pytest.raises(BadRequest):
        codec.decode(body, kind, media)


@pytest.mark.parametrize("media", MEDIA)
def test_a_body_of_the_largest_size_is_decoded(media: str) -> None:
    noise = {"noise": "x" * BODY_BYTES} | {f"key {number}": number for number in range(10_000)}
    for kind in REQUESTS:
        attempt(codec.encode(noise, media), kind, media)


@pytest.mark.parametrize(
    "body",
    [
        b'{"v": 1' + b"0" * 5_000 + b"}",
        b'{"v": 1e999}',
        b'{"v": NaN}',
        b'{"v": "\\ud800"}',
        b"\xef\xbb\xbf{}x",
        b"{}{}",
        b"null",
        b'""',
        b"",
    ],
)
def test_malformed_json_is_a_bad_request(body: bytes) -> None:
    for kind in REQUESTS:
        with pytest.raises((BadRequest, UnsupportedVersion)):
            codec.decode(body, kind, codec.JSON)


@pytest.mark.parametrize("text", [b"\\ud800", b"\\ud800\\ud800", b"\xff\xfe", b"\xed\xa0\x80"])
def test_texts_that_are_not_unicode_are_bad_requests(text: bytes) -> None:
    with pytest.raises(BadRequest):
        codec.decode(b'{"package_id": "' + text + b'"}', CANCEL_TASKS.request, codec.JSON)


@pytest.mark.parametrize("number", [2**63, 2**64, 10**30, -(2**63) - 1])
def test_numbers_wider_than_64_bits_are_refused(number: int) -> None:
    start = _plain(START_TASKS.request) | {"data": {"type": "range", "start": number, "step": 1}}
    publish = _plain(PUBLISH_RESULTS.request)
    publish["publications"][0]["generation"] = number
    for body, kind in ((start, START_TASKS.request), (publish, PUBLISH_RESULTS.request)):
        with pytest.raises(BadRequest, match=r"Expected `int`|out of range"):
            codec.decode(codec.encode(body, codec.JSON), kind, codec.JSON)


def _plain(kind: type[msgspec.Struct]) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(codec.encode(samples(kind)[0], codec.JSON))
    return plain
