"""TaskQueue: visibility, receipts, repeated attempts, and messages that no worker finishes."""

from pathlib import Path

import pytest

from cloudpar_master.ports import Message, Sending
from master.races import race
from support.clock import SetClock
from support.stores import Factory, Stores

from .test_task_queue import VISIBILITY_S, bodies, send, take

ATTEMPT_S = 300.0


def test_a_message_that_is_not_deleted_surfaces_again(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (first,) = take(stores)
    clock.move(VISIBILITY_S - 0.1)
    assert take(others) == []
    clock.move(0.1)
    assert others.queue.waiting() == 1
    (second,) = take(others)
    assert (second.body, second.receives) == (first.body, 2)
    assert second.receipt != first.receipt


def test_a_deleted_message_never_comes_again(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g1", "g2")
    (first,) = take(stores, 1)
    others.queue.delete([first.receipt])
    others.queue.delete([first.receipt])
    clock.move(VISIBILITY_S)
    assert bodies(take(stores)) == ["body of g2"]


def test_a_message_deleted_as_unused_never_comes_again(stores: Stores, others: Stores) -> None:
    send(stores, "g1")
    stores.queue.send([Sending("g2", "body of g2", express=True), Sending("g3", "body of g3")])
    messages = {message.body: message for message in [*take(stores), *take(stores)]}
    others.queue.delete_unused([messages["body of g1"].receipt, messages["body of g2"].receipt])
    others.queue.delete_unused([messages["body of g1"].receipt, "never was"])
    stores.queue.extend([message.receipt for message in messages.values()], 0.0)
    assert bodies([*take(stores), *take(stores)]) == ["body of g3"]


def test_an_extended_message_stays_hidden(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (message,) = take(stores)
    for _ in range(5):
        clock.move(VISIBILITY_S - 0.1)
        others.queue.extend([message.receipt], VISIBILITY_S)
        assert take(stores) == []
    clock.move(VISIBILITY_S)
    (again,) = take(stores)
    assert again.receives == 2


def test_an_extension_may_shorten_the_time(stores: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (message,) = take(stores)
    stores.queue.extend([message.receipt], 1.0)
    clock.move(1.0)
    assert bodies(take(stores)) == ["body of g"]


def test_a_receipt_that_is_no_longer_good_is_ignored(stores: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (first,) = take(stores)
    clock.move(VISIBILITY_S)
    (second,) = take(stores)
    stores.queue.delete([first.receipt, "never was"])
    stores.queue.extend([first.receipt, "never was"], 1000.0)
    clock.move(VISIBILITY_S)
    (third,) = take(stores)
    assert (third.body, third.receives) == (first.body, 3)
    stores.queue.delete([second.receipt, third.receipt])
    clock.move(VISIBILITY_S)
    assert take(stores) == []


def test_an_attempt_again_brings_the_same(stores: Stores, others: Stores) -> None:
    send(stores, "g1", "g2", "g3")
    first = stores.queue.receive(2, VISIBILITY_S, "attempt")
    again = others.queue.receive(2, VISIBILITY_S, "attempt")
    assert [(m.body, m.receipt, m.receives) for m in again] == [(m.body, m.receipt, m.receives) for m in first]
    assert bodies(stores.queue.receive(2, VISIBILITY_S, "another")) == ["body of g3"]


def test_messages_that_a_repeated_attempt_brings_are_hidden_again(stores: Stores, clock: SetClock) -> None:
    """A worker that lost the first answer has the whole time from the second."""
    send(stores, "g")
    stores.queue.receive(1, VISIBILITY_S, "attempt")
    clock.move(VISIBILITY_S - 0.1)
    stores.queue.receive(1, VISIBILITY_S, "attempt")
    clock.move(VISIBILITY_S - 0.1)
    assert take(stores) == []
    clock.move(0.1)
    assert bodies(take(stores)) == ["body of g"]


def test_a_repeated_attempt_brings_the_messages_that_are_left(stores: Stores) -> None:
    send(stores, "g1", "g2", "g3")
    first, second = stores.queue.receive(2, VISIBILITY_S, "attempt")
    stores.queue.delete([first.receipt])
    (left,) = stores.queue.receive(2, VISIBILITY_S, "attempt")
    assert left.receipt == second.receipt


def test_an_attempt_that_brought_nothing_may_bring_something(stores: Stores) -> None:
    assert stores.queue.receive(2, VISIBILITY_S, "attempt") == []
    send(stores, "g")
    assert bodies(stores.queue.receive(2, VISIBILITY_S, "attempt")) == ["body of g"]


def test_an_attempt_does_not_bring_messages_of_another(stores: Stores, clock: SetClock) -> None:
    send(stores, "g")
    stores.queue.receive(1, VISIBILITY_S, "attempt")
    clock.move(VISIBILITY_S)
    assert bodies(take(stores)) == ["body of g"]
    assert stores.queue.receive(1, VISIBILITY_S, "attempt") == []


def test_an_attempt_that_is_repeated_too_late_is_a_new_one(stores: Stores, clock: SetClock) -> None:
    send(stores, "g1", "g2")
    stores.queue.receive(1, ATTEMPT_S * 3, "attempt")
    clock.move(ATTEMPT_S * 2)
    assert bodies(stores.queue.receive(1, VISIBILITY_S, "attempt")) == ["body of g2"]


def lose(stores: Stores, clock: SetClock) -> list[Message]:
    """Take the messages and never finish them, until none come any more."""
    last: list[Message] = []
    while messages := take(stores):
        last = messages
        clock.move(VISIBILITY_S)
    return last


def test_a_message_that_is_delivered_too_often_is_dead(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (last,) = lose(stores, clock)
    assert last.receives >= 2
    assert stores.queue.waiting() == 0
    for each in (stores, others, stores):
        (dead,) = each.queue.dead(10)
        assert (dead.body, dead.receives) == ("body of g", last.receives)
    assert take(stores) == []


def test_a_message_is_dead_only_after_the_time_of_its_last_holder(stores: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (message,) = take(stores)
    while True:
        clock.move(VISIBILITY_S)
        messages = take(stores)
        if not messages:
            break
        (message,) = messages
        assert stores.queue.dead(10) == []
    assert len(stores.queue.dead(10)) == 1
    assert message.receives > 1


def test_dead_messages_stay_until_they_are_deleted(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g1", "g2")
    lose(stores, clock)
    first, second = stores.queue.dead(10)
    assert len(stores.queue.dead(1)) == 1
    others.queue.delete([first.receipt])
    assert bodies(stores.queue.dead(10)) == [second.body]
    stores.queue.delete([second.receipt])
    assert stores.queue.dead(10) == []


def test_dead_messages_do_not_hold_back_others(stores: Stores, clock: SetClock) -> None:
    send(stores, "g1")
    lose(stores, clock)
    send(stores, "g2")
    assert bodies(take(stores)) == ["body of g2"]


@pytest.mark.parametrize("limit", [1, 3])
def test_one_attempt_by_many_takes_no_more_than_one_would(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores, limit: int
) -> None:
    send(stores, *(f"g{number}" for number in range(30)))
    taken = race(
        factory, tmp_path, clock, 8, lambda racer, _: bodies(racer.queue.receive(limit, VISIBILITY_S, "attempt"))
    )
    assert taken == [taken[0]] * 8
    assert len(taken[0]) == limit
