"""The measurement as a picture: run time over executors, and the overhead's parts."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from cloudpar_protocol.errors import CloudparError

from .measurement import PROCESSES, Measurement
from .summary import POINTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OVERHEAD = ("serialize", "retrieve", "publish", "deserialize")
_COLOURS = ("#4477aa", "#66ccee", "#ccbb44", "#aa3377")


def check_plotting() -> None:
    """See that a plot can be drawn, before measuring for minutes.

    Raises:
        CloudparError: matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise CloudparError("a plot needs matplotlib: pip install 'cloudpar[plot]', or leave --plot away")


def save(found: Measurement, path: Path) -> None:
    """Draw it into a file, whose suffix names the format."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415  # an optional extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    figure.suptitle(f"{found.tasks} factorizations on {found.cores} cores")
    _run_times(left, found)
    _overhead(right, found)
    figure.savefig(path, dpi=150)


def _run_times(axes: "Axes", found: Measurement) -> None:
    executors = [run.executors for run in found.runs]
    ideal = [found.sequential_s / min(number, found.cores) for number in executors]
    axes.plot(executors, ideal, "--", color="0.5", label=f"ideal: sequential / executors ({found.cores} cores)")
    axes.plot(executors, [run.wall_s for run in found.runs], "o-", color="#4477aa", label="cloudpar")
    axes.plot([PROCESSES], [found.process_pool_s], "s", color="#ee6677", label=f"ProcessPoolExecutor({PROCESSES})")
    axes.axhline(found.sequential_s, color="0.8", linewidth=1, zorder=0)
    axes.annotate("sequential", (executors[-1], found.sequential_s), ha="right", va="bottom", color="0.4")
    axes.set_xticks(executors)
    axes.set_ylim(bottom=0)
    axes.set(title="Run time", xlabel="executors", ylabel="wall time in s")
    axes.legend()


def _overhead(axes: "Axes", found: Measurement) -> None:
    names = [str(run.executors) for run in found.runs]
    bottoms = [0.0] * len(names)
    for point, colour in zip(_OVERHEAD, _COLOURS, strict=True):
        heights_ms = [run.report.points_s()[POINTS.index(point)] * 1000 for run in found.runs]
        axes.bar(names, heights_ms, bottom=bottoms, color=colour, label=point, width=0.6)
        bottoms = [bottom + height for bottom, height in zip(bottoms, heights_ms, strict=True)]
    axes.set(title="The overhead's parts, sum over all tasks", xlabel="executors", ylabel="time in ms")
    axes.legend()
