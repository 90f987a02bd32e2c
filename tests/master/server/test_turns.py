"""The master serves callers in turn, however many requests one of them sends."""

import asyncio

import pytest

from cloudpar_master.server.turns import Turns

pytestmark = pytest.mark.anyio


async def test_a_caller_with_many_requests_delays_others_by_few() -> None:
    turns, served = Turns(), list[str]()

    async def request(caller: str) -> None:
        await turns.wait(caller)
        served.append(caller)

    many = [asyncio.ensure_future(request("ann")) for _ in range(100)]
    await asyncio.sleep(0)
    others = [asyncio.ensure_future(request(name)) for name in ("bob", "cid", "bob")]
    await asyncio.gather(*others, *many)
    assert max(served.index(name) for name in ("bob", "cid")) <= 5
    assert len(served) == 103


async def test_requests_of_one_caller_are_served_in_the_order_of_their_coming() -> None:
    turns, served = Turns(), list[int]()

    async def request(number: int) -> None:
        await turns.wait("ann")
        served.append(number)

    await asyncio.gather(*map(request, range(20)))
    assert served == list(range(20))


async def test_a_request_whose_client_has_hung_up_takes_no_turn() -> None:
    turns = Turns()
    gone = [asyncio.ensure_future(turns.wait("ann")) for _ in range(3)]
    last = asyncio.ensure_future(turns.wait("ann"))
    await asyncio.sleep(0)
    for each in gone:
        each.cancel()
    await last
    assert not turns._waiting
