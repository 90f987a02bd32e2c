"""Concurrent callers on AWS's own engine."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TypeVar

from cloudpar_master.core.events import ExecutorsIdle
from cloudpar_master.ports import AccountRecord
from master.packages import inbox, make_head, make_spec
from master.stores import NOW, Stores

CALLERS = 64
T = TypeVar("T")


def at_once(call: Callable[[int], T]) -> list[T]:
    line = Barrier(CALLERS, timeout=60)

    def caller(number: int) -> T:
        line.wait()
        return call(number)

    with ThreadPoolExecutor(CALLERS) as threads:
        return list(threads.map(caller, range(CALLERS)))


def test_one_save_of_a_version_wins(real_tables: Stores) -> None:
    packages, spec = real_tables.packages, make_spec(tasks=CALLERS)
    packages.create(spec, make_head(spec))
    for version in range(1, 4):
        heads = [make_head(spec, version, cursor=number) for number in range(CALLERS)]
        saved = at_once(lambda number, heads=heads: packages.save(heads[number], NOW))  # type: ignore[misc]
        assert saved.count(True) == 1
        assert packages.load("p") == heads[saved.index(True)]


def test_one_creation_wins(real_tables: Stores) -> None:
    specs = [make_spec(started_at=NOW + number) for number in range(CALLERS)]
    stored = at_once(lambda number: real_tables.packages.create(specs[number], make_head(specs[number])))
    winners = [spec for number, spec in enumerate(stored) if spec is specs[number]]
    assert len(winners) == 1
    assert stored == winners * CALLERS


def test_every_event_is_stored_once(real_tables: Stores) -> None:
    packages, spec = real_tables.packages, make_spec()
    packages.create(spec, make_head(spec))
    at_once(
        lambda number: packages.append(
            "p", [(f"{number % 32}", ExecutorsIdle(executors=1)), ("all", ExecutorsIdle(executors=1))]
        )
    )
    assert sorted(item.key for item in inbox(packages)) == sorted([*map(str, range(32)), "all"])


def test_never_over_the_quota(real_tables: Stores) -> None:
    accounts = real_tables.accounts
    accounts.create(AccountRecord("a", "name", "hash", "active", 1000, 0, 0, NOW))
    granted_us = at_once(lambda number: accounts.reserve("a", f"p{number}", 0, 37).granted_us)
    assert sum(granted_us) == 1000
    account = accounts.get("a")
    assert account is not None
    assert (account.reserved_us, account.free_us) == (1000, 0)
    charged_us = at_once(lambda number: accounts.settle("a", f"p{number}", 20))
    account = accounts.get("a")
    assert account is not None
    assert (account.spent_us, account.reserved_us) == (sum(charged_us), 0)
    assert account.spent_us <= 1000


def test_a_late_slice_and_the_end_of_its_package(real_tables: Stores) -> None:
    """In either order, no quota stays reserved."""
    accounts = real_tables.accounts
    accounts.create(AccountRecord("a", "name", "hash", "active", 10_000, 0, 0, NOW))

    def settle_or_reserve(package_id: str, caller: int) -> None:
        if caller % 8 == 0:
            accounts.settle("a", package_id, 5)
        else:
            accounts.reserve("a", package_id, caller, 10)

    for number in range(4):
        at_once(partial(settle_or_reserve, f"p{number}"))
    account = accounts.get("a")
    assert account is not None
    assert (account.spent_us, account.reserved_us) == (20, 0)
