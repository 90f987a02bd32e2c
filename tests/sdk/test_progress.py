"""While workers start, progress says so, and why none can."""

import logging
from types import SimpleNamespace

import pytest

from cloudpar.awaited import Awaited
from cloudpar.future import FutureReceiver
from cloudpar.inbox import Inbox
from cloudpar.package import Package
from cloudpar.progress import Bars
from cloudpar_protocol.client_messages import FleetStatus, PackageStatus, Progress

FULL = "We currently do not have sufficient c7g.large capacity."


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def package(bars: Bars, waited_s: float = 0.0) -> Awaited:
    """A map's package that was started so long ago."""
    share = Inbox(lambda _: None).share(0, 4)
    awaited = Awaited(Package(4), share, on_news=bars.update)
    awaited.package.started("p")
    awaited.started_at -= waited_s
    share.started(awaited)
    return awaited


def news(awaited: Awaited, fleet: FleetStatus | None, executors: int = 0, state: str = "running") -> None:
    progress = Progress(tasks=4, executors=executors)
    awaited.fleet = fleet
    awaited.take(PackageStatus(package_id="p", state=state, cursor=1, progress=progress))  # type: ignore[arg-type]


def test_workers_that_start(capsys: pytest.CaptureFixture[str]) -> None:
    awaited = package(Bars(progress=True, endpoint="http://here:1"), waited_s=40.2)
    news(awaited, FleetStatus(running=0, starting=2))
    news(awaited, None, state="cancelled")
    shown = capsys.readouterr().err
    assert "0 workers, 2 starting, 4" in shown


def test_workers_that_work(capsys: pytest.CaptureFixture[str]) -> None:
    awaited = package(Bars(progress=True, endpoint="http://here:1"))
    news(awaited, FleetStatus(running=2), executors=4)
    news(awaited, None, state="cancelled")
    shown = capsys.readouterr().err
    assert "0 errors, 4 executors" in shown
    assert "starting" not in shown


def test_why_none_can_start_is_said_once_for_each_reason(capsys: pytest.CaptureFixture[str]) -> None:
    awaited = package(Bars(progress=True, endpoint="http://here:1"))
    for message in (None, FULL, FULL, "Access denied.", None):
        news(awaited, FleetStatus(starting=2, message=message))
    news(awaited, None, state="cancelled")
    shown = capsys.readouterr().err
    assert shown.count(f"no worker can start yet: {FULL}") == 1
    assert shown.count("no worker can start yet: Access denied.") == 1


@pytest.mark.parametrize("progress", [None, False])
def test_without_a_bar_the_log_says_now_and_then_how_workers_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, progress: bool | None
) -> None:
    awaited = package(Bars(progress, "http://here:1"))

    def after(waited_s: float, fleet: FleetStatus, executors: int = 0) -> None:
        clock = SimpleNamespace(monotonic=lambda: awaited.started_at + waited_s)
        with monkeypatch.context() as patch:
            patch.setattr("cloudpar.progress.time", clock)
            news(awaited, fleet, executors)

    for waited_s in (4, 11, 12, 29, 34, 90, 103):
        after(waited_s, FleetStatus(starting=2))
    after(110, FleetStatus(running=2), executors=2)
    after(15, FleetStatus(running=1))  # another package, whose wait begins anew
    assert [record.getMessage() for record in caplog.records] == [
        *(f"cloudpar: no result yet: 0 workers, 2 starting, {waited_s} s" for waited_s in (11, 34, 103)),
        "cloudpar: no result yet: 1 worker, 0 starting, 15 s",
    ]


def test_futures_have_no_bar_but_the_log(caplog: pytest.LogCaptureFixture) -> None:
    bars = Bars(progress=True, endpoint="http://here:1")
    awaited = Awaited(Package(4), FutureReceiver([], None, lambda: None), on_news=bars.update)  # type: ignore[arg-type]
    awaited.package.started("p")
    awaited.started_at -= 12.2
    news(awaited, FleetStatus(starting=1))
    assert "no result yet: 0 workers, 1 starting, 12 s" in caplog.text


@pytest.mark.parametrize("progress", [None, False])
def test_without_a_bar_it_is_in_the_log(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, progress: bool | None
) -> None:
    awaited = package(Bars(progress, "http://here:1"))
    with caplog.at_level(logging.WARNING, logger="cloudpar"):
        for _ in range(3):
            news(awaited, FleetStatus(starting=2, message=FULL))
    assert [record.getMessage() for record in caplog.records] == [f"cloudpar: no worker can start yet: {FULL}"]
    shown = capsys.readouterr().err
    assert shown == ""
