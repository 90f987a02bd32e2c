"""Guarantee 23: an account that tries every trick at once makes no request of another account fail, or take long."""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from cloudpar import Pool
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import CreateAccount, RevokeAccount
from cloudpar_protocol.transport.answer import Answer
from cloudpar_protocol.transport.connection_pool import ConnectionPool
from support.master_process import TOKENS, Master
from support.open_folder import open_folder
from support.running_agent import RunningAgent
from support.scale import Scale
from support.waiting import until
from worker.isolation.shared import imports_for, python_for_all

EXECUTORS = 2
HOUR_US = 3600 * 1_000_000
SLOWER = 3.0
"""How many times as long a map of the bystander may take beside the attack. Only the full form of the test checks this:
it has enough maps, and the machine to itself."""
TESTS = Path(__file__).parents[1]


@pytest.fixture
def master() -> Iterator[Master]:
    """A master with a shared worker."""
    with open_folder() as folder:
        python = python_for_all(folder / "python")
        with Master(folder / "data", stdin=True) as master:
            agent = RunningAgent(
                master.endpoint, token=TOKENS["worker_token"], executors=EXECUTORS, isolation="shared", python=python,
                tmp=str(folder / "tmp"), environment=imports_for(python),
            )  # fmt: skip
            try:
                agent.wait_until_ready()
                yield master
                assert agent.process.poll() is None, agent.log
            finally:
                agent.close()


def account(master: Master, name: str) -> tuple[str, str]:
    """Create an account. Returns its token and its id."""
    hashed = hashlib.sha256(name.encode()).hexdigest()
    made = master.call(
        TOKENS["admin_token"], routes.CREATE_ACCOUNT,
        CreateAccount(idempotency_key=name, name=name, token_hash=hashed, quota_us=HOUR_US),
    )  # fmt: skip
    return name, made.account.account_id


@contextmanager
def attack(master: Master, name: str) -> Iterator[Callable[[], dict[str, int]]]:
    """Meanwhile an account does all its tricks. Yields a function that returns how often it has done each.

    The attacker gets only the processor time that no other process needs: its clients would run on other machines.
    """
    token, account_id = account(master, name)
    attacker = subprocess.Popen(
        [sys.executable, "-m", "system.attacker", master.endpoint, token],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])},
    )  # fmt: skip

    def done() -> dict[str, int]:
        assert attacker.stdin is not None
        assert attacker.stdout is not None
        attacker.stdin.write("\n")
        attacker.stdin.flush()
        counts: dict[str, int] = json.loads(attacker.stdout.readline())
        return counts

    try:
        until(lambda: min(done().values()) > 0)
        yield done
    finally:
        attacker.communicate()
        master.call(TOKENS["admin_token"], routes.REVOKE_ACCOUNT, RevokeAccount(account_id=account_id))


@pytest.fixture
def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests of this process that the master refused, or did not answer."""
    found: list[str] = []
    request = ConnectionPool.request

    def noting(pool: ConnectionPool, method: str, path: str, *rest: Any, **more: Any) -> Answer:
        try:
            answer = request(pool, method, path, *rest, **more)
        except OSError as error:
            found.append(f"{path}: {error!r}")
            raise
        if answer.status != 200:
            found.append(f"{path}: {answer.status} {answer.body!r}")
        return answer

    monkeypatch.setattr(ConnectionPool, "request", noting)
    return found


def map_s(pool: Pool) -> float:
    """How long a map of one task takes, in seconds."""
    began_s = time.monotonic()
    assert list(pool.map(abs, [-1])) == [1]
    return time.monotonic() - began_s


def test_g23_an_account_that_tries_everything_makes_no_request_of_another_one_fail(
    master: Master, refusals: list[str], scale: Scale, reached: Callable[..., None]
) -> None:
    rounds, maps = scale((1, 2), (5, 20))
    alone_s: list[float] = []
    beside_s: list[float] = []
    bystander, _ = account(master, "bystander")
    with Pool(master.endpoint, bystander, progress=False) as pool:
        for number in range(rounds):
            map_s(pool)
            alone_s += [map_s(pool) for _ in range(maps)]
            with attack(master, f"attacker {number}") as done:
                before = sum(done().values())
                beside_s += [map_s(pool) for _ in range(maps)]
                until(lambda: sum(done().values()) > before)  # noqa: B023 - it is called before the next round
        assert refusals == []
    slower = median(beside_s) / median(alone_s)
    reached(
        f"{len(beside_s)} maps of one task beside an account that tries everything: 0 requests refused; median "
        f"{median(alone_s) * 1000:.0f} ms alone, {median(beside_s) * 1000:.0f} ms beside it: {slower:.1f} times"
    )
    assert slower <= scale(float("inf"), SLOWER)
