"""The summary of a measurement, computed from invented figures."""

from dataclasses import replace

import pytest
from rich.console import Console

from cloudpar.demo import plot
from cloudpar.demo.measurement import Measurement, Run
from cloudpar.demo.summary import as_json, as_tables
from cloudpar.errors import CloudparError
from cloudpar.report import Report


def run(executors: int, wall_s: float, execute_s: float) -> Run:
    report = Report(
        package_id="p", tasks=500, errors=0, executors=executors, charged_s=execute_s,
        serialize_s=0.001, retrieve_s=0.02, execute_s=execute_s, publish_s=0.03, deserialize_s=0.004, await_s=wall_s,
    )  # fmt: skip
    return Run(executors, wall_s, report)


@pytest.fixture
def found() -> Measurement:
    return Measurement(
        tasks=500, largest=1_300_000, seed=1, cores=2, results_correct=True, sequential_s=10.0, process_pool_s=5.2,
        runs=(run(1, 10.1, 10.0), run(2, 5.0, 9.8), run(4, 5.1, 19.8)),
    )  # fmt: skip


def test_json_has_the_promised_form(found: Measurement) -> None:
    shown = as_json(found)
    assert (shown["tasks"], shown["results_correct"]) == (500, True)
    assert (shown["sequential_s"], shown["process_pool_s"]) == (10.0, 5.2)
    assert shown["runs"][1] == {"executors": 2, "wall_s": 5.0, "speedup": 2.0, "efficiency": pytest.approx(0.98)}
    assert [each["executors"] for each in shown["runs"]] == [1, 2, 4]
    assert shown["points_s"] == {
        "serialize": 0.001, "retrieve": 0.02, "execute": 9.8, "publish": 0.03, "deserialize": 0.004, "await": 5.0,
    }  # fmt: skip


def test_tables_name_every_run_and_every_point(found: Measurement) -> None:
    console = Console(width=140)
    with console.capture() as capture:
        console.print(as_tables(found))
    text = capture.get()
    for word in ("sequential", "ProcessPoolExecutor(2)", "4 executors", "0.980", "2.00", "19.8000 s", "1,300,000"):
        assert word in text
    assert all(f"{number} " in text for number in range(1, 7))
    assert "correct" in text


WALLS_S = [(10.1, 5.0, 5.1), (9.6, 5.0, 5.1), (9.9, 9.8, 9.7), (11.0, 5.0, 9.5), (2.0, 9.0, 14.0), (40.0, 30.0, 20.0)]


@pytest.mark.parametrize("walls_s", WALLS_S)
def test_no_text_lies_on_a_line_or_below_the_legend(found: Measurement, walls_s: tuple[float, ...]) -> None:
    runs = tuple(run(executors, wall_s, 9.8) for executors, wall_s in zip((1, 2, 4), walls_s, strict=True))
    figure = plot.draw(replace(found, runs=runs))
    axes = figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert len(axes.texts) == 3
    for text in axes.texts:
        box = text.get_window_extent()
        for line in axes.lines:
            assert not line.get_path().transformed(line.get_transform()).intersects_bbox(box, filled=False), line
        assert not box.overlaps(legend.get_window_extent())
        assert axes.bbox.count_contains(box.corners()) == 4


def test_without_matplotlib_the_error_comes_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: None)
    with pytest.raises(CloudparError, match=r"pip install 'matplotlib>="):
        plot.check_plotting()
