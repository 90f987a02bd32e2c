"""The master serves roles and accounts in turn, however many requests one of them sends."""

import asyncio
from itertools import count

import pytest

from cloudpar_master.server.fair_shares import FairShares

pytestmark = pytest.mark.anyio


async def test_a_caller_with_many_requests_delays_others_by_few() -> None:
    shares, served = FairShares(), list[str]()

    async def request(caller: str) -> None:
        await shares.wait("user", caller)
        served.append(caller)

    many = [asyncio.ensure_future(request("ann")) for _ in range(100)]
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(request(name)) for name in ("bob", "cid", "bob")]
    await asyncio.gather(*others, *many)
    assert max(served.index(name) for name in ("bob", "cid")) <= 5
    assert len(served) == 103


async def test_many_busy_accounts_delay_workers_by_few_turns() -> None:
    shares, served = FairShares(), list[str]()

    async def request(role: str, account: str = "") -> None:
        await shares.wait(role, account)
        served.append(role)

    users = [asyncio.ensure_future(request("user", f"account {n % 20}")) for n in range(20 * 50)]
    operators = [asyncio.ensure_future(request("admin")) for _ in range(50)]
    workers = [asyncio.ensure_future(request("worker")) for _ in range(50)]
    await asyncio.gather(*users, *operators, *workers)
    assert [index for index, role in enumerate(served) if role == "worker"][-1] <= 3 * 50
    assert len(served) == 22 * 50


async def test_a_caller_whose_requests_take_long_waits_for_those_who_took_less(monkeypatch: pytest.MonkeyPatch) -> None:
    shares, served, clock_ns = FairShares(), list[str](), count()
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(clock_ns) * 10**6)  # each measured block takes 1 ms

    async def request(caller: str, blocks: int) -> None:
        await shares.wait("user", caller)
        for _ in range(blocks):
            with shares.serving("user", caller):
                served.append(caller)

    long = [asyncio.ensure_future(request("ann", 100)) for _ in range(3)]
    await asyncio.sleep(0)
    short = [asyncio.ensure_future(request("bob", 1)) for _ in range(50)]
    await asyncio.gather(*long, *short)
    assert served[-100:] == ["ann"] * 100
    assert served.count("bob") == 50


async def test_requests_of_one_caller_are_served_in_the_order_of_their_coming() -> None:
    shares, served = FairShares(), list[int]()

    async def request(number: int) -> None:
        await shares.wait("user", "ann")
        served.append(number)

    await asyncio.gather(*map(request, range(20)))
    assert served == list(range(20))


async def test_a_request_whose_client_has_hung_up_takes_no_turn() -> None:
    shares = FairShares()
    gone = [asyncio.ensure_future(shares.wait("user", "ann")) for _ in range(3)]
    last = asyncio.ensure_future(shares.wait("user", "ann"))
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    await last
    assert not shares._waiting


async def test_a_light_caller_is_served_at_once_while_others_wait() -> None:
    shares, served = FairShares(), list[str]()

    async def request(caller: str) -> None:
        await shares.wait("user", caller)
        served.append(caller)

    many = [asyncio.ensure_future(request("ann")) for _ in range(20)]
    strangers = [asyncio.ensure_future(shares.wait("strangers")) for _ in range(20)]
    for _ in range(5):
        await asyncio.sleep(0)
    before = len(served)
    await request("bob")
    assert served[before:] == ["bob"]
    await asyncio.gather(*many, *strangers)


async def test_an_account_that_was_long_alone_does_not_wait_for_a_newcomer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once, all that it had ever used counted, so a newcomer was served first for as long as that."""
    shares, served, clock_ns = FairShares(), list[str](), count()
    monkeypatch.setattr("time.perf_counter_ns", lambda: next(clock_ns) * 10**6)  # each request takes 1 ms

    async def request(caller: str) -> None:
        await shares.wait("user", caller)
        with shares.serving("user", caller):
            served.append(caller)

    for _ in range(500):
        await request("ann")
        await asyncio.sleep(0)
    news = [asyncio.ensure_future(request("bob")) for _ in range(200)]
    await asyncio.sleep(0)
    await request("ann")
    await asyncio.gather(*news)
    assert served[500:].index("ann") <= 5


async def test_a_request_that_goes_on_lets_others_have_their_turns() -> None:
    """A publication of a light account with many parts is a request like all others."""
    shares, served = FairShares(), list[str]()

    async def user() -> None:
        await shares.wait("user", "ann")
        served.append("user")

    async def publication() -> None:
        for step in range(20):
            await shares.wait("worker", goes_on=step > 0)
            served.append("worker")

    users = [asyncio.ensure_future(user()) for _ in range(40)]
    await asyncio.gather(publication(), *users)
    last = len(served) - served[::-1].index("worker")
    assert served[:last].count("user") >= 18
