"""TaskQueue: sending, receiving, deduplication, order."""

from itertools import chain
from pathlib import Path

from cloudpar_master.ports import Fit, Message, Sending
from master.races import race
from support.clock import SetClock
from support.stores import Factory, Stores

VISIBILITY_S = 6.0
DEDUPLICATION_S = 300.0


def send(stores: Stores, *names: str) -> None:
    assert stores.queue.send([Sending(name, f"body of {name}") for name in names]) == [True] * len(names)


def take(stores: Stores, limit: int = 10, visibility_s: float = VISIBILITY_S) -> list[Message]:
    """Receive as a new attempt."""
    return stores.queue.receive(limit, visibility_s, stores.ids.fresh())


def bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


def test_an_empty_queue_brings_nothing(stores: Stores) -> None:
    assert take(stores) == []
    assert stores.queue.waiting() == 0
    assert stores.queue.dead(10) == []
    assert stores.queue.send([]) == []


def test_a_sent_message_is_received_once(stores: Stores, others: Stores) -> None:
    send(stores, "g1", "g2")
    assert others.queue.waiting() == 2
    messages = take(others)
    assert sorted(bodies(messages)) == ["body of g1", "body of g2"]
    assert {message.receives for message in messages} == {1}
    assert len({message.receipt for message in messages}) == 2
    assert take(stores) == take(others) == []
    assert stores.queue.waiting() == 0


def test_messages_come_first_in_first_out(stores: Stores, others: Stores, clock: SetClock) -> None:
    for number in range(6):
        send(stores if number % 2 else others, f"g{number}")
        clock.move(1.0)
    assert bodies(take(stores, 4)) == [f"body of g{number}" for number in range(4)]
    assert bodies(take(stores, 4)) == ["body of g4", "body of g5"]


def test_a_receive_brings_at_most_its_limit(stores: Stores) -> None:
    send(stores, *(f"g{number}" for number in range(5)))
    assert [len(take(stores, 2)) for _ in range(4)] == [2, 2, 1, 0]


def test_more_messages_than_one_call_of_a_service_carries_all_come(stores: Stores) -> None:
    names = [f"g{number:03}" for number in range(400)]
    send(stores, *names)
    assert stores.queue.waiting() == 400
    received: list[str] = []
    while messages := take(stores, 100):
        received += bodies(messages)
    assert sorted(received) == [f"body of {name}" for name in names]


def test_a_text_comes_back_whole(stores: Stores) -> None:
    text = 'p#0#5#7 é漢😀 "quoted" \\ \n'
    stores.queue.send([Sending("g", text)])
    assert bodies(take(stores)) == [text]


def test_a_message_says_how_long_it_has_waited(stores: Stores, clock: SetClock) -> None:
    send(stores, "g1")
    clock.move(2.5)
    (message,) = take(stores)
    assert message.wait_us == 2_500_000
    clock.move(VISIBILITY_S + 1.5)
    (again,) = take(stores)
    assert (again.receives, again.wait_us) == (2, 1_500_000)


def test_a_group_is_sent_once_in_five_minutes(stores: Stores, others: Stores, clock: SetClock) -> None:
    send(stores, "g", "g")
    clock.move(DEDUPLICATION_S - 1.0)
    send(others, "g")
    (message,) = take(stores)
    stores.queue.delete([message.receipt])
    send(stores, "g")
    assert take(stores) == []


def test_a_group_that_is_sent_again_later_is_another_message(stores: Stores, clock: SetClock) -> None:
    send(stores, "g")
    (message,) = take(stores)
    stores.queue.delete([message.receipt])
    clock.move(DEDUPLICATION_S + 1.0)
    send(stores, "g")
    assert bodies(take(stores)) == ["body of g"]
    clock.move(DEDUPLICATION_S - 1.0)
    send(stores, "g")
    assert stores.queue.waiting() == 1


def test_a_group_that_is_sent_again_later_is_not_delivered_beside_its_first_message(
    stores: Stores, clock: SetClock
) -> None:
    send(stores, "g")
    (message,) = take(stores)
    clock.move(DEDUPLICATION_S + 1.0)
    stores.queue.extend([message.receipt], DEDUPLICATION_S)
    send(stores, "g")
    assert take(stores) == []


def test_a_message_that_many_send_comes_once(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    names = [f"g{number}" for number in range(10)]
    race(factory, tmp_path, clock, 8, lambda racer, _: send(racer, *names))
    assert sorted(bodies(take(stores, 100))) == [f"body of {name}" for name in names]


def test_of_many_receivers_one_gets_each_message(
    factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores
) -> None:
    names = [f"g{number:02}" for number in range(60)]
    send(stores, *names)

    def take_all(racer: Stores, number: int) -> list[str]:
        taken: list[str] = []
        while messages := take(racer, 1 + number % 3):
            taken += bodies(messages)
        return taken

    taken = race(factory, tmp_path, clock, 8, take_all)
    assert sorted(chain.from_iterable(taken)) == [f"body of {name}" for name in names]


def test_packages_in_besides_are_left_out(stores: Stores, others: Stores) -> None:
    assert not stores.queue.has_others(())
    messages = [Sending(f"g{number}", f"body of g{number}", "ann", f"p{number % 3}") for number in range(6)]
    stores.queue.send(messages)
    assert bodies(others.queue.receive(10, VISIBILITY_S, "attempt", {"p0", "p1"})) == ["body of g2", "body of g5"]
    assert not stores.queue.has_others({"p0", "p1"})
    assert stores.queue.has_others({"p0", "p2"})
    assert len(take(stores)) == 4
    assert not stores.queue.has_others(())


def test_two_packages_get_their_chunks_in_turns(stores: Stores) -> None:
    for package in ("one", "two"):
        stores.queue.send(
            [Sending(f"{package} {number}", package, "ann", package, cost_us=10**6) for number in range(9)]
        )
    taken = bodies(take(stores, 6))
    assert taken.count("one") == taken.count("two") == 3


def test_the_first_chunk_of_a_package_comes_before_all_others(stores: Stores) -> None:
    stores.queue.send([Sending(f"long {number}", "long", "ann", "long", cost_us=10**6) for number in range(9)])
    take(stores, 2)
    stores.queue.send([Sending("new", "new", "bob", "new", first=True)])
    assert bodies(take(stores, 1)) == ["new"]


def test_a_chunk_that_came_back_unused_does_not_count_when_packages_take_turns(stores: Stores) -> None:
    for package in ("back", "other"):
        stores.queue.send(
            [Sending(f"{package} {number}", package, "ann", package, cost_us=10**6) for number in range(9)]
        )
    (first,) = take(stores, 1)
    for _ in range(3):
        stores.queue.delete_unused([first.receipt])
        (next_one,) = take(stores, 1)
        assert next_one.body == first.body
        first = next_one
    (after,) = take(stores, 1)
    assert after.body != first.body


def test_a_queue_brings_messages_that_fit_or_leaves_the_choice_to_its_caller(stores: Stores) -> None:
    """SQS does not look into messages: it brings all of them, and never says that it passed one over."""
    needs = [("p1", "3.11"), ("p2", "3.12"), ("p3", ""), ("p4", "3.11")]
    messages = [
        Sending(f"g{number}", package, "ann", package, python=python) for number, (package, python) in enumerate(needs)
    ]
    stores.queue.send(messages)
    assert stores.queue.passed_over(Fit()) == [], "a worker that reported nothing fits all"
    fit = Fit(("3.11",), ("p4",))
    passed_over = stores.queue.passed_over(fit)
    brought = set(bodies(stores.queue.receive(10, VISIBILITY_S, stores.ids.fresh(), (), fit)))
    assert (brought, set(passed_over)) in [({"p1", "p3"}, {"p2", "p4"}), ({"p1", "p2", "p3", "p4"}, set())]
    assert set(bodies(take(stores, 10))) == {"p1", "p2", "p3", "p4"} - brought


def test_a_queue_that_looks_into_messages_removes_the_waiting_ones_of_a_package(stores: Stores, others: Stores) -> None:
    """SQS removes none. A received message stays, because a worker has it."""
    names = [f"ended-{number}" for number in range(4)]
    stores.queue.send([Sending(name, name, "ann", "ended") for name in names])
    others.queue.send([Sending("other", "other", "ann", "other"), Sending("same", "same", "bob", "ended")])
    taken = take(stores, 1)
    waiting, kept = set(names) - set(bodies(taken)), {"other", "same"} - set(bodies(taken))
    withdrawn = others.queue.withdraw("ann", "ended")
    assert stores.queue.withdraw("ann", "ended") == []
    rest = set(bodies(take(stores)))
    assert (set(withdrawn), rest) in [(waiting, kept), (set(), waiting | kept)]
