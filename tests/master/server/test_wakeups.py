import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from cloudpar_master.ports import Fit, Needs
from cloudpar_master.server.wakeups import ANYTHING, Wakeups

pytestmark = pytest.mark.anyio

HOUR_S = 3600.0


async def waiting(work: Coroutine[Any, Any, object]) -> "asyncio.Task[object]":
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def woken(tasks: list["asyncio.Task[object]"]) -> list[bool]:
    for _ in range(5):
        await asyncio.sleep(0)
    return [task.done() for task in tasks]


async def test_each_sent_chunk_wakes_one_retrieval_in_order() -> None:
    wakeups = Wakeups()
    tasks = [await waiting(wakeups.wait_for_chunks(HOUR_S)) for _ in range(4)]
    wakeups.chunks_sent([ANYTHING] * 2)
    assert await woken(tasks) == [True, True, False, False]
    wakeups.chunks_sent([ANYTHING] * 99)
    assert await woken(tasks) == [True] * 4
    wakeups.chunks_sent([ANYTHING])


async def test_a_peek_is_woken_only_by_chunks_that_fit_it() -> None:
    wakeups, old = Wakeups(), Fit(("3.11",), ("lacking",))
    tasks = [await waiting(wakeups.wait_for_others(HOUR_S, old, own)) for own in (["p"], ["p", "q"], [])]
    wakeups.chunks_sent([Needs("", "r", "3.12"), Needs("", "lacking", "")])
    assert await woken(tasks) == [False] * 3
    wakeups.chunks_sent([Needs("", "p", "3.11")])
    assert await woken(tasks) == [False, False, True]
    wakeups.chunks_sent([Needs("", "q", "")] * 2)
    assert await woken(tasks) == [True, False, True]
    wakeups.chunks_sent([ANYTHING])
    assert await woken(tasks) == [True] * 3
    assert wakeups._peeks == []


async def test_a_wakeup_without_waiters_is_not_kept() -> None:
    wakeups = Wakeups()
    wakeups.chunks_sent([ANYTHING])
    task = await waiting(wakeups.wait_for_chunks(HOUR_S))
    assert await woken([task]) == [False]
    task.cancel()


async def test_a_waiter_cancelled_after_its_wakeup_passes_it_on() -> None:
    wakeups = Wakeups()
    first, second = await waiting(wakeups.wait_for_chunks(HOUR_S)), await waiting(wakeups.wait_for_chunks(HOUR_S))
    wakeups.chunks_sent([ANYTHING])
    first.cancel()
    await second
    assert await woken([first]) == [True]
    assert first.cancelled()


async def test_a_waiter_cancelled_before_a_wakeup_is_not_counted() -> None:
    wakeups = Wakeups()
    first, second = await waiting(wakeups.wait_for_chunks(HOUR_S)), await waiting(wakeups.wait_for_chunks(HOUR_S))
    first.cancel()
    assert await woken([first]) == [True]
    wakeups.chunks_sent([ANYTHING])
    await second


async def test_a_wait_ends_after_its_time() -> None:
    wakeups = Wakeups()
    await wakeups.wait_for_chunks(0.0)
    await wakeups.wait_for_news(["p"], "s", 0.0)
    wakeups.chunks_sent([ANYTHING])
    wakeups.head_saved("p")


async def test_a_chunk_passes_a_retrieval_by_that_has_just_ended() -> None:
    wakeups = Wakeups()
    ending, other = await waiting(wakeups.wait_for_chunks(HOUR_S)), await waiting(wakeups.wait_for_chunks(HOUR_S))
    wakeups._retrievals[0].waiter.set_result(None)  # as at the end of its time; its task runs a turn later
    wakeups.chunks_sent([ANYTHING])
    assert [await ending, await other] == [None, ANYTHING]


async def test_a_saved_head_wakes_all_awaits_that_name_its_package() -> None:
    wakeups = Wakeups()
    names = [["p"], ["q", "p"], ["q"]]
    tasks = [await waiting(wakeups.wait_for_news(packages, "s", HOUR_S)) for packages in names]
    wakeups.head_saved("p")
    assert await woken(tasks) == [True, True, False]
    wakeups.head_saved("r")
    wakeups.session_started("t")
    assert await woken(tasks[2:]) == [False]
    wakeups.session_started("s")
    assert await woken(tasks) == [True] * 3


async def test_a_session_and_a_package_of_the_same_name_are_apart() -> None:
    wakeups = Wakeups()
    task = await waiting(wakeups.wait_for_news(["p"], "s", HOUR_S))
    wakeups.head_saved("s")
    wakeups.session_started("p")
    assert await woken([task]) == [False]
    wakeups.wake_all()
    assert await woken([task]) == [True]


async def test_a_waiter_is_forgotten_once_it_is_woken() -> None:
    wakeups = Wakeups()
    news, chunks = wakeups.wait_for_news(["p", "q"], "s", HOUR_S), wakeups.wait_for_chunks(HOUR_S)
    tasks = [await waiting(news), await waiting(chunks)]
    wakeups.wake_all()
    assert await woken(tasks) == [True, True]
    assert (dict(wakeups._awaits), list(wakeups._retrievals)) == ({}, [])
