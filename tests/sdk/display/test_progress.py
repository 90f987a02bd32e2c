"""Progress in terminals, notebooks and files, and how workers start or why none can."""

import io
import logging
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from cloudpar._client.package import Package
from cloudpar._client.package_handle import PackageHandle
from cloudpar._client.result_buffer import MapPart, ResultBuffer
from cloudpar._display.progress import Bars
from cloudpar.errors import CloudparError
from cloudpar.future import FutureReceiver
from cloudpar_protocol.client_messages import FleetStatus, PackageStatus, Progress

FULL = "We currently do not have sufficient c7g.large capacity."


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def package(bars: Bars, waited_s: float = 0.0) -> PackageHandle:
    """A map's package that has run this many seconds."""
    part = MapPart(ResultBuffer(lambda _: None), 0, 4)
    handle = PackageHandle(Package(4), part, on_news=bars.update, name="main.<locals>.simulate")
    handle.package.started("p")
    handle.started_at -= waited_s
    part.started(handle)
    return handle


def news(
    handle: PackageHandle, fleet: FleetStatus | None, executors: int = 0, state: str = "running", *, done: int = 0
) -> None:
    progress = Progress(tasks=4, executors=executors, done=done, mean_us=60_000_000 if done else 0)
    handle.fleet = fleet
    handle.take(PackageStatus(package_id="p", state=state, cursor=1, progress=progress))  # type: ignore[arg-type]


def test_a_bar_shows_how_workers_start(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handle = package(Bars(progress=True, endpoint="http://here:1"))
    clock = SimpleNamespace(monotonic=lambda: handle.started_at + 40.2)
    monkeypatch.setattr("cloudpar._display.progress.time", clock)
    news(handle, FleetStatus(running=0, starting=2))
    news(handle, None, state="cancelled")
    shown = capsys.readouterr().err
    assert "0 workers, 2 starting, 4" in shown


def test_a_bar_shows_executors_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    handle = package(Bars(progress=True, endpoint="http://here:1"))
    news(handle, FleetStatus(running=2), executors=4)
    news(handle, None, state="cancelled")
    shown = capsys.readouterr().err
    assert "0 errors, 4 executors" in shown
    assert "starting" not in shown


def test_each_reason_why_no_worker_can_start_is_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    handle = package(Bars(progress=True, endpoint="http://here:1"))
    for message in (None, FULL, FULL, "Access denied.", None):
        news(handle, FleetStatus(starting=2, message=message))
    news(handle, None, state="cancelled")
    shown = capsys.readouterr().err
    assert shown.count(f"no worker can start yet: {FULL}") == 1
    assert shown.count("no worker can start yet: Access denied.") == 1


@pytest.mark.parametrize("progress", [None, False])
def test_without_a_bar_the_log_says_now_and_then_how_workers_start(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, progress: bool | None
) -> None:
    handle = package(Bars(progress, "http://here:1"))

    def after(waited_s: float, fleet: FleetStatus, executors: int = 0) -> None:
        clock = SimpleNamespace(monotonic=lambda: handle.started_at + waited_s)
        with monkeypatch.context() as patch:
            patch.setattr("cloudpar._display.progress.time", clock)
            news(handle, fleet, executors)

    for waited_s in (4, 11, 12, 29, 34, 90, 103):
        after(waited_s, FleetStatus(starting=2))
    after(110, FleetStatus(running=2), executors=2)
    after(15, FleetStatus(running=1))  # another package, which has waited 15 s
    assert [record.getMessage() for record in caplog.records] == [
        *(f"cloudpar: no result yet: 0 workers, 2 starting, {waited_s} s" for waited_s in (11, 34, 103)),
        "cloudpar: no result yet: 1 worker, 0 starting, 15 s",
    ]


def test_futures_are_reported_in_the_log_and_have_no_bar(caplog: pytest.LogCaptureFixture) -> None:
    bars = Bars(progress=True, endpoint="http://here:1")
    handle = PackageHandle(Package(4), FutureReceiver([], None), on_news=bars.update)  # type: ignore[arg-type]
    handle.package.started("p")
    handle.started_at -= 12.2
    news(handle, FleetStatus(starting=1))
    assert "no result yet: 0 workers, 1 starting, 12 s" in caplog.text


@pytest.mark.parametrize("progress", [None, False])
def test_without_a_bar_the_reason_why_no_worker_can_start_is_logged(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, progress: bool | None
) -> None:
    handle = package(Bars(progress, "http://here:1"))
    with caplog.at_level(logging.WARNING, logger="cloudpar"):
        for _ in range(3):
            news(handle, FleetStatus(starting=2, message=FULL))
    assert [record.getMessage() for record in caplog.records] == [f"cloudpar: no worker can start yet: {FULL}"]
    shown = capsys.readouterr().err
    assert shown == ""


# displays


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


Cell = list[tuple[str, bool, dict[str, str]]]
"""What a notebook's cell displays: the display's id, whether it is an update, and the data."""


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Cell:
    displayed: Cell = []
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = ModuleType("IPython.display")
    ipython.display.display = lambda data, *, raw, display_id, update: displayed.append((display_id, update, data))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", ipython.display)
    monkeypatch.setattr("cloudpar._display.progress.AFTER_S", 0.0)
    monkeypatch.setattr("cloudpar._display.progress_displays.REDRAWN_S", 0.0)
    return displayed


def test_a_notebook_shows_a_bar_by_default(cell: Cell, capsys: pytest.CaptureFixture[str]) -> None:
    handle = package(Bars(None, "http://here:1"), waited_s=1)
    news(handle, None, executors=1, done=1)
    news(handle, None, executors=2, done=2)
    news(handle, None, state="cancelled")
    (first, *_), ids = cell, {name for name, _, _ in cell}
    assert [update for _, update, _ in cell] == [False, True, True]
    assert len(ids) == 1, "one bar, drawn in its place"
    assert first[2]["text/plain"] == "simulate: 1 of 4, 0 errors, 1 executor, 3 min left"
    assert '<progress value="1" max="4"></progress>' in first[2]["text/html"]
    assert cell[1][2]["text/plain"] == "simulate: 2 of 4, 0 errors, 2 executors, 60 s left"
    assert capsys.readouterr() == ("", "")


def test_a_notebooks_bar_is_not_sent_for_every_result(cell: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar._display.progress_displays.REDRAWN_S", 1e9)
    handle = package(Bars(None, "http://here:1"), waited_s=1)
    for _ in range(100):
        news(handle, None, executors=1, done=1)
    news(handle, None, state="cancelled")
    assert [update for _, update, _ in cell] == [False, True]


def test_a_notebooks_bar_takes_names_as_text(cell: Cell) -> None:
    handle = package(Bars(None, "http://here:1"), waited_s=1)
    handle.name = "<lambda>"
    news(handle, None, executors=1)
    assert "&lt;lambda&gt;" in cell[0][2]["text/html"]


def test_progress_false_shows_no_bar_in_a_notebook(cell: Cell) -> None:
    news(package(Bars(progress=False, endpoint="http://here:1"), waited_s=1), None, executors=1)
    assert cell == []


def test_a_display_that_fails_costs_no_results(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("cloudpar._display.progress_displays._publish", lambda *_, **__: 1 / 0)
    handle = package(Bars(None, "http://here:1"), waited_s=1)
    for _ in range(3):
        news(handle, None, executors=1)
    news(handle, None, state="cancelled")
    assert handle.ended.is_set()
    assert caplog.text.count("progress can no longer be shown: ZeroDivisionError") == 1


def test_ipython_without_a_kernel_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    for shell in (None, SimpleNamespace()):
        ipython: Any = ModuleType("IPython")
        ipython.get_ipython = lambda shell=shell: shell
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert not Bars(None, "http://here:1")._wanted


def test_a_terminal_shows_the_functions_name_and_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows only the last state
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    handle = package(Bars(None, "http://here:1"), waited_s=60)
    news(handle, None, executors=2, done=2)
    news(handle, None, state="cancelled")
    shown = screen.getvalue()
    assert "simulate" in shown
    assert "2/4" in shown
    assert "60 s left" in shown


def test_a_bar_ends_before_the_program_has_the_last_results(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    handle = package(Bars(progress=True, endpoint="http://here:1"))
    news(handle, None, executors=2, done=2)
    end = handle.receiver.end

    def read(failure: CloudparError | None) -> None:
        shown.append(capsys.readouterr().err)
        end(failure)

    handle.receiver.end = read  # type: ignore[method-assign]
    news(handle, None, state="cancelled")
    assert shown[0].endswith("simulate: 0 of 4, 0 errors, 0 s\n")
    assert not capsys.readouterr().err


def test_a_file_gets_lines_now_and_then(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("cloudpar._display.progress_displays.time", SimpleNamespace(monotonic=lambda: now))
    handle = package(Bars(progress=True, endpoint="http://here:1"))
    for now in (0.0, 1.0, 9.0, 11.0, 12.0):
        news(handle, None, executors=2, done=2 if now < 10 else 3)
    news(handle, None, state="cancelled")
    first, second, last = capsys.readouterr().err.splitlines()
    assert first == "simulate: 2 of 4, 0 errors, 2 executors, 60 s left"
    assert second == "simulate: 3 of 4, 0 errors, 2 executors, 30 s left"
    assert last == "simulate: 0 of 4, 0 errors, 0 s"
