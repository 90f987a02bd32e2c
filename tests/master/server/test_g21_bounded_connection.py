"""Guarantee 21: what a client sends, or does not read, fills no memory, also before its token is checked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from cloudpar_master.server import bounded_connection
from cloudpar_master.server.bounded_connection import FIELDS

from .dialing import Dial, dialing, until

pytestmark = pytest.mark.anyio

POST = b"POST /%s HTTP/1.1\r\nHost: here\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
LARGE = 16_000_000


class Site:
    """An application whose paths say when it answers: /read after the body, /early before it, /held when released."""

    def __init__(self) -> None:
        self.calls = 0
        self.released = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer with the number of fields of the head, the size of the body, and an exclamation mark."""
        self.calls += 1
        request, size = Request(scope, receive), 0
        if request.url.path == "/held":
            await self.released.wait()
        if request.url.path != "/early":
            with suppress(ClientDisconnect):
                async for part in request.stream():
                    size += len(part)
        text = b"x" * LARGE if request.url.path == "/large" else b"%d fields, %d bytes!" % (len(scope["headers"]), size)
        await Response(text)(scope, receive, send)


@pytest.fixture
async def site() -> Site:
    return Site()


@pytest.fixture
async def dial(site: Site) -> AsyncIterator[Dial]:
    """A function that connects to a server of the site."""
    async with dialing(site, keep_alive_s=75) as connect:
        yield connect


@pytest.mark.parametrize("path", [b"read", b"early"])
@pytest.mark.parametrize(
    ("start", "repeated", "end"),
    [
        (b"0\r\n", b"name: value\r\n" * 1000, b"\r\n"),
        (b"0\r\n", b"a:\r\n" * 1000, b"\r\n"),
        (b"0\r\nname: ", b"x" * 10_000, b"\r\n\r\n"),
        (b"0\r\n", b"x" * 10_000, b": value\r\n\r\n"),
        (b"1\r\nx\r\n0\r\nname: ", b"x" * 10_000, b"\r\n\r\n"),
        (b"1;extension=", b"x" * 10_000, b"\r\nx\r\n0\r\n\r\n"),
        (b"", b"0" * 10_000, b"1\r\nx\r\n0\r\n\r\n"),
    ],
    ids=["trailers", "short trailers", "value", "name", "value after a body", "extension", "zeros"],
)
async def test_g21_what_surrounds_chunks_has_a_limit(
    dial: Dial, path: bytes, start: bytes, repeated: bytes, end: bytes
) -> None:
    line = await dial()
    said = await line.flood(CHUNKED % path + start, repeated, end + POST % b"read" + b"\r\n")
    assert b"200 OK" not in said or (path == b"early" and said.count(b"HTTP/1.1") == 1)


async def test_g21_trailers_are_not_kept(dial: Dial) -> None:
    said = await (await dial()).talk(CHUNKED % b"read" + b"1\r\nx\r\n0\r\n" + b"a: b\r\n" * 50 + b"\r\n", b"bytes!")
    assert said.endswith(b"2 fields, 1 bytes!")


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(
    ("start", "end"), [(POST % b"read", b"\r\n"), (CHUNKED % b"read" + b"0\r\n", b"\r\n")], ids=["head", "trailers"]
)
async def test_g21_a_head_and_its_trailers_have_a_limit_of_fields(
    dial: Dial, start: bytes, end: bytes, more: int
) -> None:
    line = await dial()
    fields = FIELDS - start.count(b": ") + more
    line.writer.write(start + b"a: b\r\n" * fields + end)
    line.writer.write_eof()
    assert (await line.reader.read()).startswith(b"HTTP/1.1 400" if more else b"HTTP/1.1 200")


async def test_g21_a_field_on_several_lines_is_refused(dial: Dial) -> None:
    line = await dial()
    line.writer.write(POST % b"read" + b"a: b\r\n" + b" c\r\n" * 100 + b"\r\n")
    assert (await line.reader.read()).startswith(b"HTTP/1.1 400")


async def test_g21_requests_before_the_answer_to_an_earlier_one_are_not_parsed(dial: Dial, site: Site) -> None:
    line = await dial()
    request = POST % b"held" + b"\r\n"
    line.writer.write(request * 5_000)
    await until(lambda: site.calls > 0)
    site.released.set()
    try:
        said = await line.reader.read()
    except ConnectionError:
        said = b""
    assert said.count(b"HTTP/1.1") <= 1
    assert site.calls == 1
    assert not line.server.pipeline


async def test_g21_the_answer_to_a_request_that_another_one_follows_too_early_closes_the_connection(
    dial: Dial, site: Site
) -> None:
    line = await dial()
    line.writer.write((POST % b"held" + b"\r\n") * 2)
    await until(lambda: line.server.flow.read_paused)
    site.released.set()
    said = await line.reader.read()
    assert said.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in said
    assert site.calls == 1


async def test_g21_a_connection_is_not_read_while_a_later_request_waits_on_it(dial: Dial, site: Site) -> None:
    """This also holds if the application checks whether the client has hung up, as it does while it holds a request."""

    async def asks(scope: Any, receive: Any, send: Any) -> None:
        del scope, send
        site.calls += 1
        while (await receive())["type"] != "http.disconnect":
            pass

    async with dialing(asks) as connect:
        line = await connect()
        line.writer.write(POST % b"held" + b"\r\n")
        await until(lambda: site.calls > 0)
        line.writer.write((POST % b"held" + b"\r\n") * 100_000)
        await until(lambda: line.server.flow.read_paused)
        await until(lambda: line.server.flow.read_paused)
        assert site.calls == 1
        assert not line.server.pipeline


async def test_a_request_after_the_early_answer_to_another_one_is_answered(dial: Dial) -> None:
    line = await dial()
    said = await line.talk(POST % b"early" + b"Content-Length: 400000\r\n\r\nstart", b"bytes!")
    assert said.endswith(b"2 fields, 0 bytes!")
    line.writer.write(b"x" * (400_000 - 5))
    assert (await line.talk(POST % b"read" + b"\r\n", b"bytes!")).endswith(b"1 fields, 0 bytes!")


async def test_g21_a_body_is_read_only_as_fast_as_the_application_takes_it(dial: Dial, site: Site) -> None:
    line = await dial()
    line.writer.write(POST % b"held" + b"Content-Length: %d\r\n\r\n" % LARGE)
    await until(lambda: site.calls > 0)
    line.writer.write(b"x" * LARGE)
    await until(lambda: line.server.flow.read_paused)
    assert len(line.server.cycle.body) <= 65536
    site.released.set()
    assert (await line.reader.readuntil(b"bytes!")).endswith(b"2 fields, %d bytes!" % LARGE)


@pytest.mark.parametrize("path", [b"read", b"early"])
async def test_g21_a_body_that_stalls_is_ended(dial: Dial, path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "STALL_S", 0.05)
    line = await dial()
    line.writer.write(POST % path + b"Content-Length: 10\r\n\r\nx")
    if path == b"early":
        await line.reader.readuntil(b"bytes!")
    assert await line.closed()


async def test_a_body_that_waits_for_the_application_is_not_ended(dial: Dial, site: Site) -> None:
    line = await dial()
    line.writer.write(POST % b"held" + b"Content-Length: 10\r\n\r\nx")
    await until(lambda: line.server.flow.read_paused)
    for _ in range(3):
        line.server._check_body()
    assert not line.server.transport.is_closing()
    site.released.set()
    await until(lambda: not line.server.flow.read_paused)
    line.server._check_body()
    assert await line.closed()


async def test_g21_a_body_that_progresses_is_not_ended(dial: Dial) -> None:
    line = await dial()
    line.writer.write(POST % b"read" + b"Content-Length: 3\r\n\r\nx")
    await until(lambda: line.server._body_came)
    line.writer.write(b"y")
    await until(lambda: line.server._progressed)
    line.server._check_body()
    assert (await line.talk(b"z", b"bytes!")).endswith(b"3 bytes!")


async def test_g21_an_answer_that_no_client_reads_is_ended(dial: Dial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "STALL_S", 0.05)
    line = await dial()
    line.reader._transport.pause_reading()  # type: ignore[attr-defined]  # this client reads nothing
    line.writer.write(POST % b"large" + b"\r\n")
    await until(line.server.transport.is_closing)


async def test_an_answer_that_the_client_reads_slowly_is_not_ended(dial: Dial) -> None:
    line = await dial()
    line.writer.write(POST % b"large" + b"\r\n")
    await until(lambda: line.server.flow.write_paused)
    unsent = line.server.transport.get_write_buffer_size()
    await line.reader.readexactly(LARGE // 2)
    await until(lambda: line.server.transport.get_write_buffer_size() < unsent)
    line.server._check_reader()
    assert not line.server.transport.is_closing()
    assert len(await line.reader.readexactly(LARGE // 2)) == LARGE // 2


async def test_g21_a_connection_whose_answer_came_before_its_body_is_not_kept_without_end(site: Site) -> None:
    async with dialing(site, keep_alive_s=0) as connect:
        line = await connect()
        line.writer.write(POST % b"early" + b"Content-Length: 2\r\n\r\n")
        await line.reader.readuntil(b"bytes!")
        line.writer.write(b"xy")
        assert await line.closed()
