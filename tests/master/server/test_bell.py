import asyncio
from collections.abc import Coroutine
from typing import Any

from cloudpar_master.ports import Fit
from cloudpar_master.server.bell import ANYTHING, Bell

HOUR_S = 3600.0


async def waiting(work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def woken(tasks: list["asyncio.Task[None]"]) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


def test_so_many_chunks_wake_so_many_in_order() -> None:
    async def run() -> None:
        bell = Bell()
        tasks = [await waiting(bell.chunks(HOUR_S)) for _ in range(4)]
        bell.chunks_sent([ANYTHING] * 2)
        assert await woken(tasks) == [True, True, False, False]
        bell.chunks_sent([ANYTHING] * 99)
        assert await woken(tasks) == [True] * 4
        bell.chunks_sent([ANYTHING])

    asyncio.run(run())


def test_a_peek_is_woken_only_by_chunks_that_it_is_for() -> None:
    async def run() -> None:
        bell, old = Bell(), Fit(("3.11",), ("lacking",))
        tasks = [await waiting(bell.peeked(HOUR_S, old, own)) for own in (["p"], ["p", "q"], [])]
        bell.chunks_sent([("r", "3.12"), ("lacking", "")])
        assert await woken(tasks) == [False] * 3
        bell.chunks_sent([("p", "3.11")])
        assert await woken(tasks) == [False, False, True]
        bell.chunks_sent([("q", ""), ("q", "")])
        assert await woken(tasks) == [True, False, True]
        bell.chunks_sent([ANYTHING])
        assert await woken(tasks) == [True] * 3
        assert bell._peeks == []

    asyncio.run(run())


def test_a_ring_is_for_those_who_wait() -> None:
    async def run() -> None:
        bell = Bell()
        bell.chunks_sent([ANYTHING])
        task = await waiting(bell.chunks(HOUR_S))
        assert await woken([task]) == [False]
        task.cancel()

    asyncio.run(run())


def test_who_is_cancelled_after_the_ring_passes_it_on() -> None:
    async def run() -> None:
        bell = Bell()
        first, second = await waiting(bell.chunks(HOUR_S)), await waiting(bell.chunks(HOUR_S))
        bell.chunks_sent([ANYTHING])
        first.cancel()
        await second
        assert await woken([first]) == [True]
        assert first.cancelled()

    asyncio.run(run())


def test_who_is_cancelled_before_the_ring_is_not_counted() -> None:
    async def run() -> None:
        bell = Bell()
        first, second = await waiting(bell.chunks(HOUR_S)), await waiting(bell.chunks(HOUR_S))
        first.cancel()
        assert await woken([first]) == [True]
        bell.chunks_sent([ANYTHING])
        await second

    asyncio.run(run())


def test_the_time_ends_a_wait() -> None:
    async def run() -> None:
        bell = Bell()
        await bell.chunks(0.0)
        await bell.news(["p"], "s", 0.0)
        bell.chunks_sent([ANYTHING])
        bell.head_saved("p")

    asyncio.run(run())


def test_news_wakes_all_that_name_it() -> None:
    async def run() -> None:
        bell = Bell()
        names = [["p"], ["q", "p"], ["q"]]
        tasks = [await waiting(bell.news(packages, "s", HOUR_S)) for packages in names]
        bell.head_saved("p")
        assert await woken(tasks) == [True, True, False]
        bell.head_saved("r")
        bell.session_started("t")
        assert await woken(tasks[2:]) == [False]
        bell.session_started("s")
        assert await woken(tasks) == [True] * 3

    asyncio.run(run())


def test_a_session_is_no_package() -> None:
    async def run() -> None:
        bell = Bell()
        task = await waiting(bell.news(["p"], "s", HOUR_S))
        bell.head_saved("s")
        bell.session_started("p")
        assert await woken([task]) == [False]
        bell.everybody()
        assert await woken([task]) == [True]

    asyncio.run(run())


def test_nothing_is_kept_of_those_who_left() -> None:
    async def run() -> None:
        bell = Bell()
        tasks = [await waiting(bell.news(["p", "q"], "s", HOUR_S)), await waiting(bell.chunks(HOUR_S))]
        bell.everybody()
        assert await woken(tasks) == [True, True]
        assert (dict(bell._awaits), list(bell._retrievals)) == ({}, [])

    asyncio.run(run())
