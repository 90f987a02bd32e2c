"""PackageStore: the inbox."""

from pathlib import Path
from typing import get_args

import pytest

from cloudpar_master.core.events import Event, ExecutorsIdle, Published
from cloudpar_protocol.payloads import TaskResult
from cloudpar_protocol_tools.samples import samples
from master.races import race
from support.clock import SetClock
from support.packages import create, forget, inbox
from support.stores import Factory, Stores

EVENTS: list[Event] = [event for kind in get_args(Event) for event in samples(kind)]


@pytest.fixture(autouse=True)
def packages(stores: Stores) -> None:
    for name in ("p", "q"):
        create(stores.packages, name, version=1)


def idle(number: int) -> Event:
    return ExecutorsIdle(executors=number)


def keys(stores: Stores, limit: int = 100, package_id: str = "p") -> list[str]:
    return [item.key for item in inbox(stores.packages, package_id, limit)]


def test_every_kind_of_event_comes_back(stores: Stores, others: Stores) -> None:
    stores.packages.append("p", [(str(number), event) for number, event in enumerate(EVENTS)])
    assert [item.event for item in inbox(others.packages, "p", len(EVENTS))] == EVENTS


def test_events_come_oldest_first_and_not_by_their_keys(stores: Stores, others: Stores) -> None:
    stores.packages.append("p", [("z", idle(1)), ("a", idle(2))])
    others.packages.append("p", [("m", idle(3))])
    stores.packages.append("p", [("b", idle(4))])
    assert keys(stores) == keys(others) == ["z", "a", "m", "b"]


def test_each_package_has_an_inbox_of_its_own(stores: Stores) -> None:
    stores.packages.append("p", [("k", idle(1))])
    stores.packages.append("q", [("k", idle(2))])
    stores.packages.delete_events("q", ["k"])
    assert keys(stores, package_id="p") == ["k"]
    assert keys(stores, package_id="q") == []


def test_an_event_under_a_stored_key_changes_nothing(stores: Stores, others: Stores) -> None:
    stores.packages.append("p", [("k", idle(1)), ("l", idle(2))])
    others.packages.append("p", [("k", idle(9)), ("m", idle(3)), ("m", idle(9))])
    items = inbox(stores.packages)
    assert [(item.key, item.event) for item in items] == [("k", idle(1)), ("l", idle(2)), ("m", idle(3))]


def test_an_inbox_is_read_up_to_the_limit(stores: Stores) -> None:
    stores.packages.append("p", [(f"{number:03}", idle(number)) for number in range(100)])
    assert keys(stores, 1) == ["000"]
    assert keys(stores, 90) == [f"{number:03}" for number in range(90)]


def test_an_inbox_is_read_up_to_about_a_megabyte_and_at_least_one_event(stores: Stores) -> None:
    def published(size: int) -> Event:
        return Published(worker_id="w", executors=1, generation=1, results=[TaskResult(0, "ok", 1, data=b"x" * size)])

    stores.packages.append("p", [("largest", published(390_000))])
    stores.packages.append("p", [(str(number), published(250_000)) for number in range(8)])
    read = keys(stores, 90)
    assert read[0] == "largest"
    assert 2 <= len(read) <= 5
    stores.packages.delete_events("p", read)
    assert keys(stores, 90)[0] == str(len(read) - 1)


def test_deleted_events_are_gone_and_others_stay(stores: Stores, others: Stores) -> None:
    stores.packages.append("p", [(str(number), idle(number)) for number in range(5)])
    others.packages.delete_events("p", ["1", "3", "never was"])
    others.packages.delete_events("p", ["1"])
    stores.packages.delete_events("p", [])
    assert keys(stores) == ["0", "2", "4"]


def test_a_deleted_key_may_come_again(stores: Stores) -> None:
    stores.packages.append("p", [("k", idle(1)), ("l", idle(1))])
    stores.packages.delete_events("p", ["k", "l"])
    stores.packages.append("p", [("l", idle(2))])
    stores.packages.append("p", [("k", idle(2))])
    assert keys(stores) == ["l", "k"]


def test_events_of_an_unknown_package_are_dropped(stores: Stores) -> None:
    stores.packages.append("never was", [("k", idle(1))])
    forget(stores.packages)
    stores.packages.append("p", [("k", idle(1))])
    stores.packages.append("p", [])
    create(stores.packages, version=1)
    assert keys(stores) == []


def test_a_forgotten_package_takes_its_inbox_along(stores: Stores) -> None:
    stores.packages.append("p", [("k", idle(1))])
    forget(stores.packages)
    create(stores.packages, version=1)
    assert keys(stores) == []


def test_every_event_of_a_race_is_there_once(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> None:
    def append(racer: Stores, number: int) -> None:
        for turn in range(5):
            racer.packages.append("p", [(f"{number}#{turn}", idle(1)), ("shared", idle(1))])

    race(factory, tmp_path, clock, 8, append)
    read = keys(stores)
    assert sorted(read) == sorted([*(f"{number}#{turn}" for number in range(8) for turn in range(5)), "shared"])
    for number in range(8):
        own = [key for key in read if key.startswith(f"{number}#")]
        assert own == sorted(own)
