"""Malformed bodies are a BadRequest. The tests of guarantee 21 damage bodies at random (tests/hostile)."""

from typing import Any

import msgspec
import pytest

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest, UnsupportedVersion
from cloudpar_protocol.routes import CANCEL_TASKS, PUBLISH_RESULTS, ROUTES, START_TASKS
from cloudpar_protocol_tools.samples import samples

REQUESTS = [route.request for route in ROUTES]


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
    with pytest.raises(BadRequest, match=f"not a valid {kind.__name__}"):
        codec.decode(body, kind, media)


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
