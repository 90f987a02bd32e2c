"""Draws a measurement: the run time by number of executors, and the parts of the overhead."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cloudpar._formatting.extras import install_command
from cloudpar_protocol.errors import CloudparError

from .measurement import PROCESSES, Measurement
from .summary import POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Annotation

_OVERHEAD = ("serialize", "retrieve", "publish", "deserialize")
_ABOVE, _BELOW = 7, -30
"""The vertical distances from a measurement in the plot to its label of two lines, above or below it, in points of 1/72
inch."""
_COLOURS = ("#4477aa", "#66ccee", "#ccbb44", "#aa3377")


def check_plotting() -> None:
    """Check that a plot can be drawn, before minutes of measuring.

    Raises:
        CloudparError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise CloudparError(f"a plot needs matplotlib: run `{install_command('plot')}`, or leave out --plot")


def save(found: Measurement, path: Path) -> None:
    """Draw the plot into a file, whose suffix selects the format."""
    draw(found).savefig(path, dpi=150)


def draw(found: Measurement) -> "Figure":
    """Draw the plot."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    figure.suptitle(
        f"{found.tasks} factorizations of products of two primes below {found.largest:,}, on {found.cores} cores"
    )
    texts = _run_times(left, found)
    _overhead(right, found)
    figure.draw_without_rendering()  # computes the positions of all elements
    for text in texts:
        _clear(text, left)
    return figure


def _clear(text: "Annotation", axes: "Axes") -> None:
    """Move a label above or below its point, to the nearest place where it covers no line."""
    paths = [line.get_path().transformed(line.get_transform()) for line in axes.lines]
    for away in range(0, 400, 2):
        for y in (_ABOVE + away, _BELOW - away):
            text.xyann = (text.xyann[0], y)
            box = text.get_window_extent().padded(2)
            if box.y0 > axes.bbox.y0 and not any(path.intersects_bbox(box, filled=False) for path in paths):
                return


def _run_times(axes: "Axes", found: Measurement) -> "list[Annotation]":
    """Draw the run times, and return the labels of the points."""
    executors = [run.executors for run in found.runs]
    ideal = [found.sequential_s / min(number, found.cores) for number in executors]
    axes.axhline(found.sequential_s, color="0.6", linewidth=1, linestyle=":", label="sequential, in this process")
    axes.plot(executors, ideal, "--", color="0.5", label=f"ideal: sequential / executors, at most {found.cores} cores")
    axes.plot(executors, [run.wall_s for run in found.runs], "o-", color="#4477aa", label="cloudpar")
    axes.plot(
        [PROCESSES], [found.process_pool_s], "s", color="#ee6677", markersize=10, fillstyle="none",
        label=f"ProcessPoolExecutor({PROCESSES})",
    )  # fmt: skip
    texts = [
        axes.annotate(
            f"{run.wall_s:.2f} s\nefficiency {run.efficiency:.3f}", (run.executors, run.wall_s), (9, _ABOVE),
            textcoords="offset points", fontsize=9,
        )
        for run in found.runs
    ]  # fmt: skip
    axes.set_xticks(executors)
    # Leave room for the labels above the highest point, and for the legend above them.
    axes.set_ylim(0, 1.55 * max(found.sequential_s, found.process_pool_s, *(run.wall_s for run in found.runs)))
    axes.set_xlim(0.7, executors[-1] + 1.2)
    axes.set(title="Run time", xlabel="executors", ylabel="wall time in s (best of the repeats)")
    axes.legend(loc="upper right", fontsize=9)
    return texts


def _overhead(axes: "Axes", found: Measurement) -> None:
    names = [str(run.executors) for run in found.runs]
    bottoms = [0.0] * len(names)
    for point, colour in zip(_OVERHEAD, _COLOURS, strict=True):
        heights_ms = [run.report.points_s()[POINTS.index(point)] * 1000 for run in found.runs]
        axes.bar(names, heights_ms, bottom=bottoms, color=colour, label=point, width=0.6)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights_ms, strict=True)]
    for place, (total_ms, run) in enumerate(zip(bottoms, found.runs, strict=True)):
        text = f"{total_ms:.0f} ms = {total_ms / 10 / run.report.execute_s:.1f} %"
        axes.annotate(text, (place, total_ms), (0, 3), textcoords="offset points", ha="center", fontsize=9)
    axes.set_ylim(0, 1.45 * max(*bottoms, 1e-6))
    axes.set(
        title="Overhead, sum over all tasks (in % of their execution)", xlabel="executors", ylabel="time in ms"
    )  # fmt: skip
    axes.legend(loc="upper left", ncols=2, fontsize=9)
