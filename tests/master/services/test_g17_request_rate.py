"""Guarantee 17, denial of service: how many requests an account may send."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_master.services import bodies, request_rate
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from cloudpar_protocol.errors import InvalidToken, RateLimited
from support.backends import call
from support.world import World, master

POLICY = Policy(requests_per_s=4.0, request_burst=10)


def ask(world: World, token: str) -> object:
    return call(world.dispatcher, token, routes.HELLO, Hello())


def count_admitted(world: World, token: str) -> int:
    admitted = 0
    while True:
        try:
            ask(world, token)
        except RateLimited:
            return admitted
        admitted += 1


def test_g17_an_account_may_send_a_burst_and_then_its_rate(tmp_path: Path, reached: Callable[[str], None]) -> None:
    with master(tmp_path, POLICY) as world:
        world.account("ann")
        world.account("bob")
        assert count_admitted(world, "ann") == 10
        assert count_admitted(world, "bob") == 10
        with pytest.raises(RateLimited, match="'ann' sends over 4 requests a second") as refused:
            ask(world, "ann")
        assert refused.value.retry_after_s == pytest.approx(0.25)
        answer = bodies.refusal({}, refused.value)
        assert (answer.status, answer.headers) == (429, {"Retry-After": "1"})
        world.clock.move(0.25)
        assert count_admitted(world, "ann") == 1
        world.clock.move(3600.0)
        assert count_admitted(world, "ann") == 10
        world.clock.move(-3600.0)
        assert count_admitted(world, "ann") == 0
        world.clock.move(1.0)
        assert count_admitted(world, "ann") == 4
    reached("requests over an account's burst and rate: 429 with Retry-After, others' are answered")


def test_requests_of_workers_and_operators_are_not_limited(tmp_path: Path) -> None:
    with master(tmp_path, POLICY) as world:
        for _ in range(20):
            ask(world, "worker")
            ask(world, "admin")
            with pytest.raises(InvalidToken):
                ask(world, "unknown")


def test_the_number_of_remembered_accounts_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_rate, "KNOWN", 2)
    with master(tmp_path, POLICY) as world:
        for name in ("ann", "bob", "eve"):
            world.account(name)
            ask(world, name)
        assert len(world.dispatcher._rate._buckets) == 2
