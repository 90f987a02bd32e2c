"""The function that runs once a minute, and the function that handles dead letters."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from cloudpar_master.core.head import OpenRange
from cloudpar_master.ports import AccountRecord, Message
from cloudpar_master.services.chunk_text import ChunkText
from cloudpar_master.services.fleet_keeper import SilentFleet
from cloudpar_master.services.timer import Due
from cloudpar_protocol.errors import Unavailable
from master.packages import make_head, make_spec
from master.stores import Stores

from .conftest import Context, Start

Log = Callable[[], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def account(stack: Stores) -> None:
    stack.accounts.create(AccountRecord("a", "ann", "hash", "active", 10**12, 0, 0, 0.0))


def create(stack: Stores, package_id: str, open_pieces: list[OpenRange] | None = None, *, reserved_us: int = 0) -> None:
    spec = make_spec(package_id, started_at=time.time() - 120)
    head = make_head(spec, 1)
    head.quota.wanted_us = 1000
    if open_pieces:
        head.tasks.open, head.tasks.cursor, head.quota.reserved_us = open_pieces, 4, reserved_us
    stack.packages.create(spec, head)


def test_due_packages_are_folded(start: Start, stack: Stores, log: Log) -> None:
    create(stack, "p")
    timer = start("timer")
    assert timer.handle({}, Context()) == {"folded": 1}
    head = stack.packages.load("p")
    assert head is not None
    assert head.version > 1
    assert head.quota.reserved_us > 0
    (line,) = log()
    assert (line["message"], line["folded"]) == ("tick", 1)


def test_an_idle_minute_costs_a_line_and_no_figure(start: Start, log: Log) -> None:
    assert start("timer").handle({}, Context()) == {"folded": 0}
    (line,) = log()
    assert "_aws" not in line


def test_rounds_follow_while_there_is_more_and_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, context = start("timer"), Context()
    rounds = iter([timer.PACKAGES, timer.PACKAGES, 3, 99])
    monkeypatch.setattr(timer._timer, "fold_due", lambda: Due(next(rounds), []))
    assert timer.handle({}, context) == {"folded": 2 * timer.PACKAGES + 3}
    rounds = iter([timer.PACKAGES, 99])
    context.remaining_ms = timer.ENOUGH_MS - 1
    assert timer.handle({}, context) == {"folded": timer.PACKAGES}


def test_rounds_go_on_after_packages_that_cannot_be_folded(
    start: Start, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    timer = start("timer")
    rounds = iter([Due(timer.PACKAGES, [RuntimeError("x")]), Due(3, [])])
    monkeypatch.setattr(timer._timer, "fold_due", lambda: next(rounds))
    with pytest.raises(ExceptionGroup, match="could not be folded"):
        timer.handle({}, Context())
    line, _ = log()
    assert (line["level"], line["folded"]) == ("ERROR", timer.PACKAGES + 2)


def test_a_tick_that_fails_is_logged(start: Start, monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    timer = start("timer")

    def fail() -> int:
        raise RuntimeError("x")

    monkeypatch.setattr(timer._timer, "fold_due", fail)
    with pytest.raises(RuntimeError):
        timer.handle({}, Context())
    line, figure = log()
    assert line["level"] == "ERROR"
    assert figure["InternalErrors"] == [1.0]


def record(body: str, number: int) -> dict[str, Any]:
    return {"messageId": f"m{number}", "receiptHandle": f"r{number}", "body": body, "attributes": {}}


def test_a_lost_chunk_is_cut_again(start: Start, stack: Stores, log: Log) -> None:
    piece = OpenRange(0, 4, 1, sent=True)
    create(stack, "p", [piece], reserved_us=10_000)
    answer = start("dead_letters").handle({"Records": [record(ChunkText.of("p", piece).text, 1)]}, Context())
    assert answer == {"batchItemFailures": []}
    head = stack.packages.load("p")
    assert head is not None
    assert [(each.start, each.end) for each in head.tasks.open] == [(0, 2), (2, 4)]
    assert len(stack.queue.receive(10, 60.0, "attempt")) == 2
    line, figure = log()
    assert (line["message"], line["package_ids"], line["chunks"]) == ("lost", ["p"], 1)
    assert figure["ChunksLost"] == [1.0]


def test_a_letter_that_fails_comes_again_and_the_others_go(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    piece = OpenRange(0, 4, 1, sent=True)
    create(stack, "p", [piece], reserved_us=10_000)
    letters = start("dead_letters")
    lost = letters._timer.lost

    def fail(message: Message) -> str | None:
        if message.body.startswith("busy"):
            raise Unavailable("x")
        done: str | None = lost(message)
        return done

    monkeypatch.setattr(letters._timer, "lost", fail)
    texts = [ChunkText.of(package_id, piece).text for package_id in ("busy", "p", "gone")]
    answer = letters.handle({"Records": [record(text, number) for number, text in enumerate(texts)]}, Context())
    assert answer == {"batchItemFailures": [{"itemIdentifier": "m0"}]}
    line, _ = log()
    assert (line["level"], line["failed"], line["package_ids"]) == ("ERROR", 1, ["p", "gone"])


def test_a_letter_that_is_no_chunk_is_deleted(start: Start, log: Log) -> None:
    """It could never be handled: Lambda would deliver it again for two weeks."""
    answer = start("dead_letters").handle({"Records": [record("nonsense", 1)]}, Context())
    assert answer == {"batchItemFailures": []}


def test_packages_are_folded_although_the_fleet_cannot_be_kept(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    create(stack, "p")
    timer = start("timer")

    def fail() -> None:
        raise SilentFleet("2 hosts run")

    monkeypatch.setattr(timer._keeper, "tick", fail)
    with pytest.raises(SilentFleet):
        timer.handle({}, Context())
    line, _ = log()
    assert (line["level"], line["error"], line["folded"]) == ("ERROR", "SilentFleet", 1)
