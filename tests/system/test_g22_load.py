"""Many clients and many agents at one master: all answers are right, no client waits for long, its memory stays."""

import hashlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import pytest

from cloudpar import Pool
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount
from support.books import connected
from support.scale import Scale
from support.task_functions import ten_milliseconds
from support.up import Up, worker
from system.test_g22_memory import TOLERATED_MB, TOLERATED_SHARE, own_mb

TASKS = 20
BOUND_S = 30.0
"""The limit for each of a client's short packages: over ten times what one takes on two cores for all processes."""
HOUR_US = 3600 * 1_000_000


def accounts(up: Up, number: int) -> list[str]:
    """Create this many accounts and return their tokens."""
    tokens = [f"client {each}" for each in range(number)]
    with connected(up, up.connection["admin_token"]) as wire:
        for token in tokens:
            hashed = hashlib.sha256(token.encode()).hexdigest()
            wire.call(
                routes.CREATE_ACCOUNT,
                CreateAccount(idempotency_key=token, name=token, token_hash=hashed, quota_us=HOUR_US),
            )
    return tokens


def work(up: Up, token: str, rounds: int, until_s: float) -> list[float]:
    """Run this many packages one after the other, and more until an instant. Returns how long each took."""
    took_s: list[float] = []
    with Pool(up.endpoint, token, progress=False) as pool:
        while len(took_s) < rounds or time.monotonic() < until_s:
            began_s = time.monotonic()
            assert list(pool.map(ten_milliseconds, range(TASKS))) == list(range(TASKS))
            took_s.append(time.monotonic() - began_s)
    return took_s


@pytest.mark.timeout(1_200)
def test_g22_many_clients_and_agents(tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    clients, agents = scale(4, 50), scale(2, 20)
    with Up(tmp_path / "data", workers=0) as up, ExitStack() as fleet, ThreadPoolExecutor(clients) as threads:
        for _ in range(agents):
            fleet.enter_context(worker(up))
        master = up.child("cloudpar_master")

        def run_all(rounds: int, seconds: float) -> list[float]:
            until_s = time.monotonic() + seconds
            done = [threads.submit(work, up, token, rounds, until_s) for token in accounts(up, clients)]
            return sorted(took_s for each in done for took_s in each.result())

        run_all(2, scale(0.0, 20.0))
        before_mb = own_mb(master)
        took_s = run_all(2, scale(0.0, 300.0))
        more_mb = own_mb(master) - before_mb
    assert more_mb <= max(TOLERATED_MB, TOLERATED_SHARE * before_mb)
    assert took_s[-1] <= BOUND_S
    reached(
        f"{clients} clients and {agents} agents: {len(took_s):,} packages of {TASKS} tasks, no error, median "
        f"{median(took_s):.2f} s, longest {took_s[-1]:.2f} s, master {before_mb:.0f} MB {more_mb:+.1f} MB"
    )
