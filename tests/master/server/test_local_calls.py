"""Calls over a Unix socket, with an application that each test scripts."""

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.server.bodies import CLIENT_GONE, read_body, refusal
from cloudpar_master.server.local_calls import LocalCalls, LocalConnection
from cloudpar_protocol import codec, frames
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.limits import BODY_BYTES

Handle = Callable[[Request], Awaitable[Response]]


class Caller:
    """The other end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def say(self, *calls: bytes) -> None:
        self.writer.write(b"".join(calls))

    async def answer(self) -> tuple[int, bytes]:
        status, size = frames.ANSWER.unpack(await self.reader.readexactly(frames.ANSWER.size))
        return status, await self.reader.readexactly(size)


class App:
    """An application that handles each request by a function of the test."""

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    async def response(self, request: Request) -> tuple[Response, Exception | None]:
        try:
            return await self.handle(request), None
        except RequestError as error:
            return refusal(request, error), None
        except Exception as error:  # noqa: BLE001 - as App does
            return refusal(request, error), error


def talk(handle: Handle, conversation: Callable[[Caller, LocalCalls], Awaitable[None]]) -> None:
    """Serve one connection, which starts with a token."""

    async def run() -> None:
        here, there = socket.socketpair()
        app: Any = App(handle)
        server = LocalCalls(app)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: LocalConnection(server), there)
        caller = Caller(*await asyncio.open_connection(sock=here))
        caller.say(frames.call("", b"token"))
        async with asyncio.timeout(60):
            await conversation(caller, server)
        caller.writer.close()

    asyncio.run(run())


async def echo(request: Request) -> Response:
    path, token = request.scope["path"], request.headers["authorization"]
    return Response(f"{path} {token} ".encode() + await read_body(request))


def test_calls_are_answered_one_after_the_other_however_they_arrive() -> None:
    async def conversation(caller: Caller, _: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b"1"), frames.call("/v1/b", b"2"))
        assert await caller.answer() == (200, b"/v1/a Bearer token 1")
        assert await caller.answer() == (200, b"/v1/b Bearer token 2")
        for byte in frames.call("/v1/c", b"3"):
            caller.say(bytes([byte]))
            await asyncio.sleep(0)
        assert await caller.answer() == (200, b"/v1/c Bearer token 3")

    talk(echo, conversation)


def test_a_body_over_the_limit_is_refused_before_it_has_come() -> None:
    async def conversation(caller: Caller, _: LocalCalls) -> None:
        caller.say(frames.CALL.pack(len("/v1/a"), BODY_BYTES + 1), b"/v1/a", b"the start of it")
        status, body = await caller.answer()
        assert (status, codec.decode_error(body, status).code) == (413, "too_large")
        assert await caller.reader.read() == b""

    talk(echo, conversation)


def test_an_unexpected_error_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(_: Request) -> Response:
        raise LookupError("on purpose")

    async def conversation(caller: Caller, _: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b""))
        assert (await caller.answer())[0] == 500
        assert "on purpose" in caplog.text

    with caplog.at_level(logging.ERROR):
        talk(fail, conversation)


@pytest.mark.parametrize("end", ["close", "write_eof"])
def test_a_held_call_ends_without_an_answer_when_its_caller_hangs_up(end: str) -> None:
    held = asyncio.Event()

    async def hold(request: Request) -> Response:
        await read_body(request)
        held.set()
        assert (await request.receive())["type"] == "http.disconnect"
        return Response(status_code=CLIENT_GONE)

    async def conversation(caller: Caller, server: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b""))
        await held.wait()
        getattr(caller.writer, end)()
        await server.close()
        assert not server.connections
        if end == "write_eof":
            assert await caller.reader.read() == b""

    talk(hold, conversation)


def test_a_caller_that_sends_no_more_gets_the_answer_to_its_last_call() -> None:
    async def conversation(caller: Caller, _: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b"1"))
        caller.writer.write_eof()
        assert await caller.answer() == (200, b"/v1/a Bearer token 1")
        assert await caller.reader.read() == b""

    talk(echo, conversation)


def test_at_its_end_the_server_answers_what_is_under_way_and_serves_nothing_more() -> None:
    served: list[str] = []
    size = 3_000_000

    async def large(request: Request) -> Response:
        served.append(request.scope["path"])
        await asyncio.sleep(0)
        return Response(bytes(size))

    async def conversation(caller: Caller, server: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b""), frames.call("/v1/b", b""))
        while not served:  # noqa: ASYNC110 - no event says that the call has begun
            await asyncio.sleep(0)
        end = asyncio.ensure_future(server.close())
        assert await caller.answer() == (200, bytes(size))
        assert await caller.reader.read() == b""
        await end
        assert (served, server.connections) == (["/v1/a"], set())

    talk(large, conversation)


def test_a_call_that_does_not_end_is_cancelled_at_the_servers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar_master.server.local_calls.GRACE_S", 0.01)
    ended = asyncio.Event()

    async def wait(_: Request) -> Response:
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()
        raise AssertionError("unreachable")

    async def conversation(caller: Caller, server: LocalCalls) -> None:
        caller.say(frames.call("/v1/a", b""))
        while not any(each._task for each in server.connections):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await server.close()
        assert ended.is_set()
        assert await caller.reader.read() == b""

    talk(wait, conversation)


def test_a_fault_of_the_application_itself_closes_the_connection() -> None:
    async def conversation(caller: Caller, server: LocalCalls) -> None:
        async def fail(_: Request) -> Any:
            raise KeyError("on purpose")

        app: Any = server.app
        app.response = fail
        caller.say(frames.call("/v1/a", b""))
        assert await caller.reader.read() == b""

    talk(echo, conversation)
