"""Damaged bodies on every route of the server and the functions are accepted, or refused with 4xx and a clear error."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cloudpar_protocol import codec
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.routes import ROUTES, Route
from support.scale import Scale

from .mutations import DEEP, goldens, knocks
from .target import MEDIA, Knock, Target

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
every_route = pytest.mark.parametrize("route", ROUTES, ids=[route.name for route in ROUTES])


def ask(target: Target, knock: Knock) -> set[int]:
    """Return the statuses of the server's and the function's answers."""
    return {target.server(knock), target.function(knock), target.function(knock, binary=False)}


@every_route
def test_g21_damaged_bodies_are_accepted_or_refused_with_4xx(
    route: Route[Any, Any], target: Target, scale: Scale, reached: Callable[[str], None]
) -> None:
    statuses: Counter[int] = Counter()

    @settings(max_examples=scale(60, 2_000), suppress_health_check=list(HealthCheck), database=None)
    @given(data=st.data())
    def damaged(data: st.DataObject) -> None:
        knock = data.draw(knocks(route, target.seeds))
        statuses.update([target.server(knock), target.function(knock)])

    damaged()
    target.renew()
    refused = statuses.total() - statuses[200]
    assert refused > statuses.total() / 3
    reached(f"{route.name}: {statuses.total():,} damaged bodies, {refused:,} refused with 4xx, no 5xx")


@every_route
def test_g21_truncated_bodies_are_refused(route: Route[Any, Any], target: Target) -> None:
    for media in MEDIA:
        body = codec.encode(goldens(route)[-1], media)
        for size in range(0, len(body), 1 + len(body) // 50):
            knock = Knock(route, media, body[:size])
            assert ask(target, knock) == {400}


@every_route
@pytest.mark.parametrize("media", MEDIA)
def test_g21_a_body_over_the_limit_is_refused(route: Route[Any, Any], media: str, target: Target) -> None:
    assert ask(target, Knock(route, media, b"0" * (BODY_BYTES + 1))) == {413}


@every_route
def test_g21_deeply_nested_bodies_are_refused(route: Route[Any, Any], target: Target) -> None:
    for knock in (
        Knock(route, codec.JSON, b"[" * DEEP),
        Knock(route, codec.JSON, b'{"x":' * DEEP + b"1" + b"}" * DEEP),
        Knock(route, codec.MSGPACK, b"\x91" * DEEP),
        Knock(route, codec.MSGPACK, b"\x81\xa1x" * DEEP),
    ):
        assert ask(target, knock) == {400}


def test_g21_requests_of_the_corpus_get_valid_answers(target: Target, reached: Callable[[str], None]) -> None:
    assert len(CORPUS) > 100
    for path in CORPUS:
        ask(target, Knock.parse(path.read_bytes()))
    reached(f"the fuzzer's corpus, {len(CORPUS)} bodies: no 5xx")
