"""With a reserved concurrency of 1 everything still completes, only more slowly."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

from cloudpar import Pool
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol.limits import INLINE_RESULT_BYTES
from support.running_agent import RunningAgent
from support.stores import Stores

from .conftest import WORKER_TOKEN, Start
from .gateway import REFUSALS, Gateway

TASKS = 40
CUSTOMERS = {name: name.ljust(43, "_") for name in ("ann", "bob", "cem")}
"""Names with tokens in the form of release 0.3.0, since clients send others by plain HTTP only to a proved master."""


@pytest.fixture
def gateway(start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateway]:
    for name, token in CUSTOMERS.items():
        stack.accounts.create(AccountRecord(name, name, hash_token(token), "active", 10**12, 0, 0, 0.0))
    monkeypatch.setenv("CLOUDPAR_POLICY", json.dumps({"chunk_target_us": 20_000}))
    with Gateway(start("client"), start("worker"), start("timer")) as gateway:
        yield gateway


@pytest.fixture
def agents(gateway: Gateway) -> Iterator[list[RunningAgent]]:
    with (
        closing(RunningAgent(gateway.endpoint, token=WORKER_TOKEN, executors=1)) as first,
        closing(RunningAgent(gateway.endpoint, token=WORKER_TOKEN, executors=1)) as second,
    ):
        yield [first.wait_until_ready(), second.wait_until_ready()]


def use(pool: Pool) -> list[int]:
    """Run small tasks, and some whose data and results go through the bucket."""
    large = b"x" * (2 * INLINE_RESULT_BYTES)
    small = pool.map(abs, range(-TASKS, 0))
    copies = pool.map(bytes.upper, [large] * 8)
    assert list(copies) == [large.upper()] * 8
    return list(small)


def test_small_and_large_tasks_complete_with_one_call_at_a_time(
    gateway: Gateway, agents: list[RunningAgent], stack: Stores
) -> None:
    with ThreadPoolExecutor(len(CUSTOMERS)) as threads, ExitStack() as opened:
        # Connect before there is load: the first answer may take 10 s, all others minutes.
        pools = [opened.enter_context(Pool(gateway.endpoint, token, progress=False)) for token in CUSTOMERS.values()]
        results = list(threads.map(use, pools))
    assert results == [list(range(TASKS, 0, -1))] * len(CUSTOMERS)
    for name in CUSTOMERS:
        account = stack.accounts.get(name)
        assert account is not None
        heads = list(stack.packages.of_account(name, 10))
        assert account.reserved_us == 0
        assert account.spent_us == sum(head.quota.charged_us for head in heads) > 0
    assert min(gateway.client.throttled, gateway.worker.throttled, *gateway.refusals.values()) > 0
    assert len(gateway.refusals) == len(REFUSALS)
