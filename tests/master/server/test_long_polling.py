"""Requests that are held. A test lets the event loop turn until a request waits, so nothing here depends on time."""

import asyncio
import hashlib
from collections.abc import Coroutine
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from cloudpar_master.core.policy import Policy
from cloudpar_master.server.wakeups import ANYTHING
from cloudpar_master.services import client_service
from cloudpar_master.services.access import Caller
from cloudpar_master.services.dispatcher import Call
from cloudpar_master.services.steps import Steps, finish
from cloudpar_protocol import codec, routes
from cloudpar_protocol.account_messages import CreateAccount
from cloudpar_protocol.client_messages import AwaitTasksReply, Hello, ListPackages
from cloudpar_protocol.limits import HOLD_S
from cloudpar_protocol.payloads import Unwritable
from cloudpar_protocol.worker_messages import ExtendLeases, LeaseRef, RetrieveTasksReply
from support.asgi import Answer

from .served import Served, awaiting, decoded, publication, retrieval, start_tasks

pytestmark = pytest.mark.anyio

MANY = 100

TURNS = 20
"""Turns of the event loop: more than any request needs until it waits, or from its wakeup to its answer."""


async def held(work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
    """Start a request, and let it come to where it waits."""
    task = asyncio.ensure_future(work)
    await turn_loop()
    assert not task.done()
    return task


async def turn_loop() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


def retrieving(
    served: Served, name: str = "w", chunks: int = 1, *, own: bool = False
) -> Coroutine[Any, Any, RetrieveTasksReply]:
    request = replace(retrieval(name, chunks=chunks, hold_s=HOLD_S), own=own)
    return served.ask("worker", routes.RETRIEVE_TASKS, request)


def hearing(
    served: Served, *packages: str, session: str = "-", cursor: int = 0
) -> Coroutine[Any, Any, AwaitTasksReply]:
    request = awaiting(*packages, session=session, cursor=cursor, hold_s=HOLD_S)
    return served.ask("user", routes.AWAIT_TASKS, request)


async def add_account(served: Served) -> None:
    """Add an account with the token "other". A worker with `own` does not serve it."""
    token_hash = hashlib.sha256(b"other").hexdigest()
    account = CreateAccount(idempotency_key="other", name="other", token_hash=token_hash, quota_us=10**9)
    await served.ask("admin", routes.CREATE_ACCOUNT, account)


async def start(served: Served, key: str = "key", *, tasks: int = 1, session: str = "-") -> str:
    request = start_tasks(key, tasks=tasks, session=session)
    return (await served.ask("user", routes.START_TASKS, request)).package_id


async def test_a_held_await_answers_when_a_worker_reports_that_it_cannot_write(served: Served) -> None:
    package_id = await start(served)
    (lease,) = (await retrieving(served)).leases
    hears = await held(hearing(served, package_id))
    report = Unwritable("a worker cannot write results")
    leases = [LeaseRef(**lease.identity())]
    await served.ask("worker", routes.EXTEND_LEASES, ExtendLeases(worker_id="w", leases=leases, unwritable=report))
    assert (await hears).unwritable == report
    (await held(hearing(served, package_id))).cancel()  # the same report does not end the next one at once


async def test_a_session_of_the_same_name_in_another_account_wakes_no_await(served: Served) -> None:
    await add_account(served)
    package_id = await start(served, session="mine")
    hears = await held(hearing(served, package_id, session="mine"))
    await served.ask("other", routes.START_TASKS, start_tasks(session="mine"))
    await turn_loop()
    assert not hears.done()
    await start(served, "mine", session="mine")
    assert (await hears).packages[0].state == "running"


async def test_a_held_retrieval_wakes_on_a_start(served: Served) -> None:
    retrieve = await held(retrieving(served))
    package_id = await start(served)
    reply = await retrieve
    assert [lease.package_id for lease in reply.leases] == [package_id]
    assert reply.retry_after_s == 0.0


async def test_a_request_with_something_to_answer_is_not_held(served: Served) -> None:
    package_id = await start(served)
    (lease,) = (await retrieving(served)).leases
    await served.ask("worker", routes.PUBLISH_RESULTS, publication(lease))
    reply = await hearing(served, package_id)
    assert [result.data for result in reply.packages[0].results] == [b"value"]


async def test_a_worker_that_hung_up_gets_nothing_and_its_wakeup_goes_to_another(served: Served) -> None:
    way = served.exchange("worker", routes.RETRIEVE_TASKS, retrieval("gone", hold_s=HOLD_S))
    gone = await held(way.run(served.app))
    other = await held(retrieving(served, "other"))
    way.hang_up()
    await start(served)  # before the server has seen that the first one hung up
    reply = await other
    assert [lease.attempt for lease in reply.leases] == [1]
    await gone


async def test_a_worker_that_hung_up_before_it_was_served_gets_nothing(served: Served) -> None:
    await start(served)
    way = served.exchange("worker", routes.RETRIEVE_TASKS, retrieval("gone", hold_s=HOLD_S))
    way.hang_up()
    await way.run(served.app)
    (lease,) = (await retrieving(served, "other")).leases
    assert lease.attempt == 1


async def test_a_client_that_hangs_up_leaves_no_held_request(served: Served) -> None:
    package_id, before = await start(served), asyncio.all_tasks()
    way = served.exchange("user", routes.AWAIT_TASKS, awaiting(package_id, cursor=10**6, hold_s=HOLD_S))
    gone = await held(way.run(served.app))
    way.hang_up()
    answer: Answer = await gone
    await turn_loop()
    assert asyncio.all_tasks() == before
    assert answer.status == 499


async def test_a_lost_chunk_wakes_a_held_retrieval_at_the_next_tick(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No adapter reports that a lease runs out. The tick does, also for retrievals from before the lease."""
    served = Served(tmp_path_factory.mktemp("data"), Policy(lease_s=0.0))

    first, second = await held(retrieving(served, "dies")), await held(retrieving(served, "waits"))
    await start(served)
    (lost,) = (await first).leases
    finish(served.assembly.tick())
    (lease,) = (await second).leases
    assert (lease.start, lease.generation, lease.attempt) == (lost.start, lost.generation, 2)
    served.close()


async def test_a_lost_chunk_wakes_a_retrieval_that_can_take_it_behind_others_that_cannot(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    served = Served(tmp_path_factory.mktemp("data"), Policy(lease_s=0.0))
    await add_account(served)
    own = [await held(retrieving(served, f"own {number}", own=True)) for number in range(5)]
    first, second = await held(retrieving(served, "dies")), await held(retrieving(served, "waits"))
    await served.ask("other", routes.START_TASKS, start_tasks())
    (lost,) = (await first).leases
    finish(served.assembly.tick())
    await turn_loop()
    assert second.done()
    assert [lease.package_id for lease in (await second).leases] == [lost.package_id]
    assert not any(each.done() for each in own)
    for each in own:
        each.cancel()
    served.close()


async def test_a_tick_repeats_one_retrieval_while_no_worker_can_take_the_waiting_chunks(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_account(served)
    own = [await held(retrieving(served, f"own {number}", own=True)) for number in range(5)]
    for number in range(5):
        await served.ask("other", routes.START_TASKS, start_tasks(f"key {number}"))
    dispatcher = served.assembly.long_polling.dispatcher
    perform, repeated = dispatcher.perform, list[str]()

    def counting(call: Call) -> Struct:
        repeated.append(call.request.worker_id)
        return perform(call)

    monkeypatch.setattr(dispatcher, "perform", counting)
    for _ in range(5):
        finish(served.assembly.tick())
        await turn_loop()
    # each tick another one, so that each worker can take what becomes free for it
    assert repeated == [f"own {number}" for number in range(5)]
    for each in own:
        each.cancel()


async def test_the_wakeup_of_a_worker_that_hung_up_goes_to_one_that_can_take_the_chunk(served: Served) -> None:
    await add_account(served)
    long_polling, hung_up = served.assembly.long_polling, asyncio.Event()
    body = codec.encode(retrieval("gone", hold_s=HOLD_S))
    call = long_polling.dispatcher.admit(routes.RETRIEVE_TASKS.name, "worker", body, codec.MSGPACK)
    gone = await held(long_polling.retrieve(call, hung_up.is_set))
    own, other = await held(retrieving(served, "own", own=True)), await held(retrieving(served, "other"))
    hung_up.set()
    await served.ask("other", routes.START_TASKS, start_tasks())
    await turn_loop()
    assert other.done()
    assert len((await other).leases) == 1
    assert not own.done()
    await gone
    own.cancel()


async def test_a_held_await_wakes_on_a_result(served: Served) -> None:
    package_id = await start(served)
    (lease,) = (await retrieving(served)).leases
    cursor = (await served.ask("user", routes.AWAIT_TASKS, awaiting(package_id))).packages[0].cursor
    news = await held(hearing(served, package_id, cursor=cursor))
    await served.ask("worker", routes.PUBLISH_RESULTS, publication(lease))
    (status,) = (await news).packages
    assert len(status.results) == 1
    assert status.cursor > cursor


def performed_by(served: Served, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each request adds its account's name, or its role, when the master performs it."""
    dispatcher = served.assembly.long_polling.dispatcher
    steps, callers = dispatcher.steps, list[str]()

    def recording(call: Call) -> Steps[Struct]:
        callers.append(call.user.name if call.user else call.caller.role)
        return steps(call)

    monkeypatch.setattr(dispatcher, "steps", recording)
    return callers


async def test_held_awaits_of_one_account_that_wake_together_delay_another_account_by_few_requests(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add_account(served)
    package_id = await start(served)
    (lease,) = (await retrieving(served)).leases
    cursor = (await served.ask("user", routes.AWAIT_TASKS, awaiting(package_id))).packages[0].cursor
    many = [await held(hearing(served, package_id, cursor=cursor)) for _ in range(MANY)]
    callers = performed_by(served, monkeypatch)
    await served.ask("worker", routes.PUBLISH_RESULTS, publication(lease))
    await served.ask("other", routes.HELLO, Hello())
    assert callers.index("other") < MANY // 2
    assert all(reply.packages[0].results for reply in await asyncio.gather(*many))


async def test_held_retrievals_that_wake_together_delay_an_account_by_few_requests(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [await held(retrieving(served, f"w{number}")) for number in range(MANY)]
    callers = performed_by(served, monkeypatch)
    served.assembly.wakeups.chunks_sent([ANYTHING] * MANY)
    await served.ask("user", routes.HELLO, Hello())
    assert callers.index("default") < MANY // 2
    for each in many:
        each.cancel()


async def test_a_worker_that_hangs_up_before_its_turn_passes_its_wakeup_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    long_polling, turns_come = served.assembly.long_polling, asyncio.Event()
    dispatcher = long_polling.dispatcher

    def retrieve(name: str) -> Coroutine[Any, Any, Struct]:
        body = codec.encode(retrieval(name, hold_s=HOLD_S))
        call = dispatcher.admit(routes.RETRIEVE_TASKS.name, "worker", body, codec.MSGPACK)
        return long_polling.retrieve(call, lambda: False)

    async def turn(_caller: Caller) -> None:
        await turns_come.wait()

    gone, other = await held(retrieve("gone")), await held(retrieve("other"))
    monkeypatch.setattr(long_polling, "turn", turn)
    body = codec.encode(start_tasks())
    dispatcher.perform(dispatcher.admit(routes.START_TASKS.name, "user", body, codec.MSGPACK))
    await turn_loop()
    gone.cancel()
    await turn_loop()
    turns_come.set()
    reply = await other
    assert isinstance(reply, RetrieveTasksReply)
    assert len(reply.leases) == 1


async def test_an_await_of_an_unknown_package_is_answered_at_once(served: Served) -> None:
    reply = await hearing(served, "unknown")
    assert list(reply.missing) == ["unknown"]


async def test_a_new_package_of_the_session_wakes_its_await_once(served: Served) -> None:
    first = await start(served, "first", session="s")
    news = await held(hearing(served, first, session="s", cursor=10**6))
    other = await held(hearing(served, first, session="another", cursor=10**6))
    second = await start(served, "second", session="s")
    assert [status.package_id for status in (await news).packages] == [first]
    again = await held(hearing(served, first, session="s", cursor=10**6))
    assert not other.done()
    both = await held(hearing(served, first, second, session="s", cursor=10**6))
    for task in (again, both, other):
        task.cancel()


async def test_a_package_started_before_the_await_ends_it_once(served: Served) -> None:
    first = await start(served, "first", session="s")
    await start(served, "second", session="s")
    await hearing(served, first, session="s", cursor=10**6)
    news = await held(hearing(served, first, session="s", cursor=10**6))
    news.cancel()


async def test_the_end_of_the_server_answers_all_held_requests(served: Served) -> None:
    package_id = await start(served, tasks=1)
    await retrieving(served, "busy")
    news = await held(hearing(served, package_id, cursor=10**6))
    retrieve = await held(retrieving(served))
    served.assembly.long_polling.end()
    assert (await retrieve).leases == []
    assert (await news).packages[0].state == "running"
    late = await retrieving(served, "late")
    assert (late.leases, late.retry_after_s > 0) == ([], True)
    assert (await hearing(served, package_id, cursor=10**6)).retry_after_s > 0


async def test_no_request_is_held_longer_than_its_hold_s(served: Served) -> None:
    for request in (retrieval(), retrieval("b", hold_s=0.001)):
        answer = await served.exchange("worker", routes.RETRIEVE_TASKS, request).run(served.app)
        assert decoded(answer, RetrieveTasksReply).leases == []
    package_id = await start(served)
    brief = awaiting(package_id, cursor=10**6, hold_s=0.001)
    (status,) = (await served.ask("user", routes.AWAIT_TASKS, brief)).packages
    assert status.results == []


async def test_a_fault_in_a_held_request_reaches_its_caller(served: Served) -> None:
    way = served.exchange("worker", routes.RETRIEVE_TASKS, retrieval(hold_s=HOLD_S))
    task = await held(way.run(served.app))
    served.assembly.database.execute("ALTER TABLE messages RENAME TO gone")
    served.assembly.wakeups.wake_all()
    with pytest.raises(Exception, match="messages"):
        await task
    assert way.answer().status == 500


async def test_a_long_list_leaves_turns_to_other_accounts(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await add_account(served)
    for number in range(MANY):
        await start(served, f"key {number}")
    monkeypatch.setattr(client_service, "LISTED", 1)
    listed = asyncio.ensure_future(served.ask("user", routes.LIST_PACKAGES, ListPackages()))
    await asyncio.sleep(0)
    assert (await served.ask("other", routes.HELLO, Hello())).name == "other"
    assert not listed.done()
    assert len((await listed).packages) == MANY


async def test_many_sessions_of_one_account_end_no_await_of_another_late(served: Served) -> None:
    """The master remembers some sessions with new packages, but of each account apart."""
    await add_account(served)
    first = await start(served, "first", session="s")
    await start(served, "second", session="s")
    unseen = served.assembly.long_polling._unseen
    for number in range(20_000):
        unseen.add("other", f"session {number}", "package")
    reply = await hearing(served, first, session="s", cursor=10**6)
    assert [status.package_id for status in reply.packages] == [first]
