"""retries= and retry_on=: what goes over the wire, and what is refused."""

from typing import Any

import pytest

from cloudpar import Pool
from cloudpar.errors import Unavailable
from cloudpar_protocol.client_messages import StartTasks
from support.fake_master import TOKEN, FakeMaster

UNAVAILABLE = "cloudpar_protocol.errors.Unavailable"
"""The name of this class in messages, which workers of every release know."""


class Passing(Exception):
    """An exception of a module of the project."""


def started(master: FakeMaster) -> list[tuple[int, list[str]]]:
    return [(each.retries, each.retry_on) for each in master.received(StartTasks)]


def test_retries_of_a_map_travel_with_its_package(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN) as pool:
        list(pool.map(abs, [-1], retries=2))
        list(pool.map_unordered(abs, [-1], retries=3, retry_on=OSError))
        list(pool.starmap(abs, [(-1,)], retries=1, retry_on=(Passing, Unavailable)))
        list(pool.map(abs, [-1]))
    assert started(master) == [(2, []), (3, ["OSError"]), (1, [f"{__name__}.Passing", UNAVAILABLE]), (0, [])]


def test_retries_of_a_pool_apply_to_all_calls_but_parallel_for(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN, retries=4, retry_on=OSError) as pool:
        assert pool.submit(abs, -1).result() == 1
        list(pool.map(abs, [-1]))
        list(pool.map(abs, [-1], retries=0))
        pool.parallel_for(0, 1, abs)
    assert started(master) == [(4, ["OSError"]), (4, ["OSError"]), (0, []), (0, [])]


@pytest.mark.parametrize(
    ("retries", "retry_on", "kind"),
    [
        (-1, Exception, ValueError), (101, Exception, ValueError), (1, (), TypeError), (1, "OSError", TypeError),
        (1, KeyboardInterrupt, TypeError), (1, (OSError,) * 21, ValueError),
        (1.5, Exception, TypeError), ("2", Exception, TypeError),
    ],
)  # fmt: skip
def test_malformed_retries_are_refused(master: FakeMaster, retries: Any, retry_on: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"retries|retry_on"):
        Pool(master.endpoint, TOKEN, retries=retries, retry_on=retry_on)
    with Pool(master.endpoint, TOKEN) as pool, pytest.raises(kind, match=r"retries|retry_on"):
        pool.map(abs, [1], retries=retries, retry_on=retry_on)


def test_retry_on_without_retries_is_refused(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN, retries=3) as pool, pytest.raises(ValueError, match="with retries="):
        pool.map(abs, [1], retry_on=OSError)
