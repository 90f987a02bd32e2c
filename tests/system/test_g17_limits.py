"""Guarantee 17, limits of an account, end to end: a caller over a limit waits; what never fits is an error at once."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from cloudpar.errors import TooLarge
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.transport.socket_pool import Timeouts
from support.books import connected
from support.command import CLOUDPAR
from support.up import Up
from support.waiting import until

LIMITS = {"requests_per_s": 40, "request_burst": 20, "running_packages": 2, "running_tasks": 100}
CALLERS, CALLS = 8, 12


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    more = [word for name, figure in LIMITS.items() for word in ("--set", f"{name}={figure}")]
    with Up(tmp_path_factory.mktemp("data"), workers=2, more=more) as up:
        yield up


def test_g17_many_callers_of_a_small_account_just_take_longer(
    limited: Up, caplog: pytest.LogCaptureFixture, reached: Callable[[str], None]
) -> None:
    def call(caller: int) -> list[int]:
        with limited.pool() as pool:
            return list(pool.map(abs, range(-caller, 0))) + [pool.submit(abs, -n).result() for n in range(CALLS)]

    with ThreadPoolExecutor(CALLERS) as callers:
        found = list(callers.map(call, range(1, CALLERS + 1)))
    assert found == [[*range(caller, 0, -1), *range(CALLS)] for caller in range(1, CALLERS + 1)]
    assert "does not answer" not in caplog.text
    reached(f"{CALLERS} callers of an account with {LIMITS['requests_per_s']} requests a second: all served, later")


def test_a_package_that_never_fits_is_an_error_at_once(limited: Up) -> None:
    with limited.pool() as pool, pytest.raises(TooLarge, match=r"101 tasks are over the 100 .*buffersize="):
        pool.map(abs, range(101))
    with limited.pool() as pool:
        assert sum(pool.map(abs, range(121), buffersize=50)) == 120 * 121 // 2


def test_the_answer_says_when_to_come_again(limited: Up) -> None:
    with connected(limited, limited.connection["token"]) as wire:
        statuses: set[int] = set()

        def both() -> bool:
            statuses.add(wire._channel._master.post("/v1/hello", b"\x80", Timeouts(5.0, 5.0)).status)
            return statuses >= {200, 429}

        until(both)
        assert statuses == {200, 429}
        assert wire.call(routes.HELLO, Hello()).role == "user"


def test_calls_that_are_submitted_together_are_never_too_large(limited: Up) -> None:
    with limited.pool() as pool:
        calls = [pool.submit(abs, -n) for n in range(3 * LIMITS["running_tasks"])]
        assert [call.result() for call in calls] == list(range(len(calls)))


@pytest.mark.timeout(300)
def test_more_clients_than_an_account_may_have_connections_are_all_served(tmp_path: Path) -> None:
    few_files = ["sh", "-c", 'ulimit -n 128 && exec "$@"', "sh", *CLOUDPAR]
    clients = 18  # an account has an eighth of the files: 16 connections
    start = Barrier(clients)

    def call(client: int) -> list[int]:
        items = [bytes([client]) * 100_000 for _ in range(10)]  # too large to be sent inline
        with up.pool() as pool:
            assert pool.submit(abs, -client).result() == client
            start.wait()
            return list(pool.map(len, items)) + list(pool.map(sum, items[:2]))

    with Up(tmp_path, workers=2, program=few_files) as up, ThreadPoolExecutor(clients) as threads:
        found = list(threads.map(call, range(clients)))
    assert found == [[100_000] * 10 + [client * 100_000] * 2 for client in range(clients)]
