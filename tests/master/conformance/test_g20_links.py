"""Payload links on every store: each use of a link but the one that it was made for is refused."""

import zlib
from collections.abc import Callable

from msgspec.structs import replace

from cloudpar_protocol.limits import LINK_S
from support.asgi import Answer
from support.clock import SetClock
from support.stores import Stores

KEY, OTHER = "results/p/l/0", "results/p/l/1"
BODY = bytes(range(256)) * 40


def test_g20_a_link_is_valid_for_one_object_one_method_and_one_payload(
    stores: Stores, reached: Callable[[str], None]
) -> None:
    send, refused = stores.transfer, list[Answer]()
    there = stores.blobs.put_link(OTHER, len(BODY), zlib.crc32(BODY))
    assert send(there, BODY).status == 200
    writing, reading = stores.blobs.put_link(KEY, len(BODY), zlib.crc32(BODY)), stores.blobs.get_link(KEY)
    refused += [
        send(replace(writing, url=writing.url.replace("l/0", "l/2")), BODY),
        send(replace(reading, url=reading.url.replace("l/0", "l/1"))),
        send(replace(there, method="GET")),
        send(replace(reading, method="PUT"), BODY),
        send(writing, BODY + b"x"),
        send(writing, BODY[:-1]),
        send(writing, BODY[::-1]),
        send(there, BODY[::-1]),
        send(stores.blobs.put_link(OTHER, 1, zlib.crc32(b"x")), b"x"),
    ]
    assert not stores.blobs.exists(KEY)
    assert send(writing, BODY).status == 200
    assert send(writing, BODY).status in {200, 412}  # 412 says that the blob is there, which is success
    assert send(reading).body == BODY
    assert all(400 <= answer.status < 500 for answer in refused), [answer.status for answer in refused]
    reached(f"{len(refused)} uses of links for another key, method, size or payload: refused")


def test_g20_a_link_expires_after_fifteen_minutes(
    stores: Stores, clock: SetClock, reached: Callable[[str], None]
) -> None:
    there = stores.blobs.put_link(KEY, len(BODY), zlib.crc32(BODY))
    assert stores.transfer(there, BODY).status == 200
    reading, writing = stores.blobs.get_link(KEY), stores.blobs.put_link(OTHER, len(BODY), zlib.crc32(BODY))
    assert LINK_S == 15 * 60
    clock.move(LINK_S - 5.0)
    assert stores.transfer(reading).status == 200
    clock.move(10.0)
    for link, body in ((reading, b""), (writing, BODY), (there, BODY)):
        assert 400 <= stores.transfer(link, body).status < 500
    assert not stores.blobs.exists(OTHER)
    reached("links after 15 minutes: refused")
