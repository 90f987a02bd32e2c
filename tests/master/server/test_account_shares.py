"""What one account may use of the server: connections, and memory for the bodies of calls."""

import asyncio
import resource
from functools import partial
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from cloudpar_master.server.account_shares import CONNECTIONS, Shares, most_connections
from cloudpar_master.server.app import CROWDED_S
from cloudpar_master.server.bodies import read_body
from cloudpar_master.server.connections import admitted, hold
from cloudpar_protocol import codec, routes
from cloudpar_protocol.client_messages import AwaitTasksReply, Hello
from cloudpar_protocol.errors import RateLimited
from cloudpar_protocol.limits import BODY_BYTES

from .dialing import Line, dialing, until
from .served import Served, awaiting, retrieval, start_tasks

LARGE = 16_000_000
HELLO = codec.encode(Hello())


class Peer:
    """A connection that records whether it was closed, or had to give way."""

    def __init__(self) -> None:
        self.closed = self.gave_way = False

    def close(self) -> None:
        """Record the call."""
        self.closed = True

    def give_way(self) -> None:
        """Record the call."""
        self.gave_way = True


def test_an_account_at_its_limit_loses_the_connection_that_was_idle_longest() -> None:
    shares, peers = Shares(4), [Peer() for _ in range(5)]
    busy, first, second, third, new = peers
    for peer in peers[:4]:
        shares.enter(peer, "ann")
    for peer in (first, second, third):
        shares.rest(peer)
    shares.start(first)
    shares.rest(first)
    shares.enter(new, "ann")
    assert [peer.closed for peer in (busy, first, second, third, new)] == [False, False, True, False, False]


def test_the_request_that_is_held_for_longest_gives_way_if_no_connection_is_idle() -> None:
    shares, peers = Shares(3), [Peer() for _ in range(5)]
    for peer in peers[:3]:
        shares.enter(peer, "ann")
    shares.rest(peers[0], holds=True)
    shares.rest(peers[1], holds=True)
    shares.rest(peers[2])
    shares.enter(peers[3], "ann")
    shares.enter(peers[4], "ann")
    assert [peer.closed for peer in peers] == [False, False, True, False, False]
    assert [peer.gave_way for peer in peers] == [True, False, False, False, False]


def test_an_account_without_an_idle_connection_has_to_wait() -> None:
    shares, peers = Shares(2), [Peer() for _ in range(3)]
    for peer in peers[:2]:
        shares.enter(peer, "ann")
    with pytest.raises(RateLimited, match="2 connections") as refused:
        shares.enter(peers[2], "ann")
    assert refused.value.retry_after_s
    shares.enter(peers[2], "bob")
    shares.enter(peers[0], "ann")
    shares.leave(peers[1])
    shares.enter(Peer(), "ann")


def test_workers_and_operators_have_no_limit() -> None:
    shares = Shares(1, 1)
    for _ in range(10):
        peer = Peer()
        shares.enter(peer, "")
        shares.hold(peer, 10)


def test_a_connection_that_another_account_uses_no_longer_counts_to_the_first() -> None:
    shares, shared = Shares(1, 10), Peer()
    shares.enter(shared, "ann")
    shares.hold(shared, 10)
    shares.enter(shared, "bob")
    other = Peer()
    shares.enter(other, "ann")
    shares.hold(other, 10)
    shares.hold(shared, 10)


def test_the_bodies_of_an_account_have_a_limit_together() -> None:
    shares, (first, second, other) = Shares(2, 10), (Peer(), Peer(), Peer())
    for peer, account in ((first, "ann"), (second, "ann"), (other, "bob")):
        shares.enter(peer, account)
    shares.hold(first, 6)
    with pytest.raises(RateLimited, match="10 bytes"):
        shares.hold(second, 5)
    shares.hold(other, 10)
    shares.hold(first, 5)
    shares.hold(second, 5)


def test_what_has_ended_is_forgotten() -> None:
    shares = Shares()
    for number in range(10):
        peer = Peer()
        shares.enter(peer, f"account {number}")
        shares.hold(peer, 5)
        shares.rest(peer)
        shares.leave(peer)
        shares.leave(peer)
    assert not any(
        [shares._accounts, shares._numbers, shares._idle, shares._holding, shares._held, shares._held_by_account]
    )


@pytest.mark.parametrize(
    ("files", "most"), [(resource.RLIM_INFINITY, CONNECTIONS), (1 << 20, CONNECTIONS), (1024, 128), (256, 32)]
)
def test_accounts_get_an_eighth_of_the_files_each(files: int, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert most_connections() == most


def post(token: str, path: str, body: bytes, missing: int = 0) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: m\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body) + missing}"
    return head.encode() + b"\r\n\r\n" + body


async def status(line: Line) -> int:
    """Read the head of an answer, and return its status."""
    return int((await line.reader.readuntil(b"\r\n\r\n")).split(b" ")[1])


@pytest.mark.anyio
async def test_held_requests_take_no_more_connections_of_an_account_than_allowed(served: Served) -> None:
    shares = Shares(2)
    held = post("user", routes.AWAIT_TASKS.path, codec.encode(awaiting("p", hold_s=20.0)))
    async with dialing(served.app, shares=shares) as dial:
        lines = [await dial() for _ in range(4)]
        for line in lines[:2]:
            line.writer.write(post("user", routes.HELLO.path, HELLO, missing=1))
            await until(partial(shares._accounts.__contains__, line.server))
        lines[2].writer.write(held)
        head = await lines[2].reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 429")
        assert b"retry-after: 1\r\n" in head
        for token, route, request in (
            ("worker", routes.RETRIEVE_TASKS, retrieval()),
            ("admin", routes.HELLO, Hello()),
        ):
            other = await dial()
            other.writer.write(post(token, route.path, codec.encode(request)))
            assert await status(other) == 200
        lines[0].writer.transport.abort()
        await until(lambda: lines[0].server not in shares._accounts)
        lines[3].writer.write(post("user", routes.HELLO.path, HELLO))
        assert await status(lines[3]) == 200
        last = await dial()
        last.writer.write(post("user", routes.HELLO.path, HELLO))
        assert await status(last) == 200
        assert await lines[3].reader.read()  # the rest of the answer, and then the end: it was idle


@pytest.mark.anyio
async def test_a_held_await_gives_way_to_another_connection_of_its_account(served: Served) -> None:
    package_id = (await served.ask("user", routes.START_TASKS, start_tasks())).package_id
    shares = Shares(1)
    async with dialing(served.app, shares=shares) as dial:
        first, second = await dial(), await dial()
        first.writer.write(post("user", routes.AWAIT_TASKS.path, codec.encode(awaiting(package_id))))
        head = await first.reader.readuntil(b"\r\n\r\n")
        size = int(head.partition(b"content-length: ")[2].split(b"\r\n")[0])
        reply = codec.decode(await first.reader.readexactly(size), AwaitTasksReply)
        held = awaiting(package_id, cursor=reply.packages[0].cursor, hold_s=20.0)
        first.writer.write(post("user", routes.AWAIT_TASKS.path, codec.encode(held)))
        await until(lambda: bool(shares._holding))
        second.writer.write(post("user", routes.HELLO.path, HELLO))
        assert await status(second) == 200
        said = await first.reader.read()
        assert said.startswith(b"HTTP/1.1 200")
        reply = codec.decode(said.partition(b"\r\n\r\n")[2], AwaitTasksReply)
        assert (reply.packages, reply.retry_after_s) == ([], CROWDED_S)


@pytest.mark.anyio
async def test_the_memory_for_bodies_of_an_account_has_a_limit(served: Served) -> None:
    async with dialing(served.app, shares=Shares(bodies_bytes=2 * BODY_BYTES)) as dial:
        lines = [await dial() for _ in range(3)]
        for line in lines[:2]:
            line.writer.write(post("user", routes.HELLO.path, b"x", missing=BODY_BYTES - 1))
            await until(partial(line.server.shares._held.__contains__, line.server))
        lines[2].writer.write(post("user", routes.HELLO.path, HELLO))
        assert await status(lines[2]) == 429
        other = await dial()
        other.writer.write(post("worker", routes.RETRIEVE_TASKS.path, codec.encode(retrieval())))
        assert await status(other) == 200
        lines[0].writer.write(b"x" * (BODY_BYTES - 1))
        assert await status(lines[0]) == 400
        again = await dial()
        again.writer.write(post("user", routes.HELLO.path, HELLO))
        assert await status(again) == 200


@pytest.mark.anyio
async def test_a_body_of_unknown_length_counts_as_the_longest(served: Served) -> None:
    async with dialing(served.app, shares=Shares(bodies_bytes=BODY_BYTES - 1)) as dial:
        line = await dial()
        head = post("user", routes.HELLO.path, b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        line.writer.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(HELLO), HELLO))
        assert await status(line) == 429


async def loud(scope: Any, receive: Any, send: Any) -> None:
    """Answer with LARGE bytes, which count."""
    request = Request(scope, receive)
    admitted(request, "ann")
    await read_body(request)
    hold(request, LARGE)
    await Response(b"x" * LARGE)(scope, receive, send)


@pytest.mark.anyio
async def test_an_answer_counts_until_the_client_has_read_it() -> None:
    shares = Shares(bodies_bytes=LARGE)
    async with dialing(loud, shares=shares) as dial:
        line = await dial()
        line.writer.write(post("user", "/", b""))
        head = await line.reader.readuntil(b"\r\n\r\n")
        await until(lambda: not line.server._tasks)
        assert line.server.flow.write_paused
        assert shares._held_by_account == {"ann": LARGE}
        with pytest.raises(RateLimited):
            shares.hold(line.server, LARGE + 1)
        assert head.startswith(b"HTTP/1.1 200")
        assert len(await line.reader.readexactly(LARGE)) == LARGE
        await until(lambda: not shares._held_by_account)


@pytest.mark.anyio
async def test_a_request_whose_client_has_hung_up_counts_until_the_application_has_ended_it() -> None:
    shares, released, begun = Shares(1), asyncio.Event(), asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        admitted(Request(scope, receive), "ann")
        hold(Request(scope, receive), 5)
        begun.set()
        await released.wait()
        await Response()(scope, receive, send)

    async with dialing(slow, shares=shares) as dial:
        line = await dial()
        line.writer.write(post("user", "/", b""))
        await begun.wait()
        line.writer.transport.abort()
        await until(lambda: line.server._lost)
        assert shares._held_by_account == {"ann": 5}
        with pytest.raises(RateLimited):
            shares.enter(Peer(), "ann")
        released.set()
        await until(lambda: not shares._accounts and not shares._held_by_account)
