"""The function that runs once a minute: hosts, lost chunks, and packages that are due."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from cloudpar_master.core.head import OpenRange
from cloudpar_master.ports import AccountRecord, Message
from cloudpar_master.services.chunk_text import ChunkText
from cloudpar_master.services.fleet_keeper import SilentFleet
from cloudpar_master.services.steps import Steps
from cloudpar_master.services.timer import MESSAGES, Due
from cloudpar_protocol.errors import Unavailable
from support.packages import make_head, make_spec
from support.stores import Stores

from .conftest import Context, Start
from .states import lose

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


def done(due: Due) -> Steps[Due]:
    """Work that has a single step."""
    yield
    return due


def test_rounds_follow_while_there_is_more_and_time(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    timer, context = start("timer"), Context()
    rounds = iter([timer.PACKAGES, timer.PACKAGES, 3, 99])
    monkeypatch.setattr(timer._timer, "fold_due", lambda: done(Due(next(rounds), [])))
    assert timer.handle({}, context) == {"folded": 2 * timer.PACKAGES + 3}
    rounds = iter([timer.PACKAGES, 99])
    context.remaining_ms = timer.ENOUGH_MS - 1
    assert timer.handle({}, context) == {"folded": timer.PACKAGES}


def test_rounds_go_on_after_packages_that_cannot_be_folded(
    start: Start, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    timer = start("timer")
    rounds = iter([Due(timer.PACKAGES, [RuntimeError("x")]), Due(3, [])])
    monkeypatch.setattr(timer._timer, "fold_due", lambda: done(next(rounds)))
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


def left(stack: Stores) -> int:
    """Count the dead letters that no function has received yet."""
    return len(stack.queue.dead(10))


def test_a_lost_chunk_is_cut_again(start: Start, stack: Stores, log: Log) -> None:
    piece = OpenRange(0, 4, 1, sent=True)
    create(stack, "p", [piece], reserved_us=10_000)
    lose(ChunkText.of("p", piece).text)
    start("timer").handle({}, Context())
    head = stack.packages.load("p")
    assert head is not None
    assert [(each.start, each.end) for each in head.tasks.open] == [(0, 2), (2, 4)]
    assert len(stack.queue.receive(10, 60.0, "attempt")) == 2
    line, figure = log()
    assert (line["message"], line["package_ids"]) == ("tick", ["p"])
    assert figure["ChunksLost"] == [1.0]
    assert left(stack) == 0


def test_all_lost_chunks_are_reported_in_one_run(start: Start, stack: Stores, log: Log) -> None:
    count = 2 * MESSAGES + 1
    lose(*(ChunkText("gone", number, number + 1, 1).text for number in range(count)))
    context = Context()
    context.remaining_ms = 55_000
    start("timer").handle({}, context)
    assert log()[1]["ChunksLost"] == [count]
    assert left(stack) == 0


def test_further_lost_chunks_leave_time_for_folding(start: Start, stack: Stores) -> None:
    context = Context()
    timer = start("timer")
    context.remaining_ms = timer.ENOUGH_FOR_FOLDING_MS - 1
    lose(*(ChunkText("gone", number, number + 1, 1).text for number in range(MESSAGES + 1)))
    timer.handle({}, context)
    assert left(stack) == 1


def test_a_letter_that_fails_comes_again_and_the_others_go(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    piece = OpenRange(0, 4, 1, sent=True)
    create(stack, "p", [piece], reserved_us=10_000)
    timer = start("timer")
    lost = timer._timer.lost

    def fail(message: Message) -> str | None:
        if message.body.startswith("busy"):
            raise Unavailable("x")
        done: str | None = lost(message)
        return done

    monkeypatch.setattr(timer._timer, "lost", fail)
    monkeypatch.setattr("cloudpar_master.services.timer.DEFER_S", 0.0)
    lose(*(ChunkText.of(package_id, piece).text for package_id in ("busy", "p", "gone")))
    with pytest.raises(ExceptionGroup, match="some lost chunks could not be reported"):
        timer.handle({}, Context())
    line, _ = log()
    assert (line["level"], sorted(line["package_ids"])) == ("ERROR", ["gone", "p"])
    (again,) = stack.queue.dead(10)
    assert again.body.startswith("busy")


def test_a_letter_that_is_no_chunk_is_deleted(start: Start, stack: Stores) -> None:
    """It could never be reported: the timer would fail each minute for two weeks."""
    lose("nonsense")
    assert start("timer").handle({}, Context()) == {"folded": 0}
    assert left(stack) == 0


def test_packages_are_folded_although_the_dead_letters_cannot_be_read(
    start: Start, stack: Stores, monkeypatch: pytest.MonkeyPatch, log: Log
) -> None:
    create(stack, "p")
    timer = start("timer")

    def fail() -> None:
        raise Unavailable("x")

    monkeypatch.setattr(timer._timer, "report_lost", fail)
    with pytest.raises(Unavailable):
        timer.handle({}, Context())
    assert log()[0]["folded"] == 1


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
