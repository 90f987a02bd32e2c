"""Draws how many executors are busy over the time of each load."""

from collections.abc import Sequence
from pathlib import Path

from .scenario import Figures


def draw(found: Sequence[Figures], folder: Path) -> None:
    """Draw one picture for all loads: scale.png."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - only plots need matplotlib
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    figure = Figure(figsize=(9, 1.2 + 2.2 * len(found)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, each in zip(figure.subplots(len(found), 1, squeeze=False)[:, 0], found, strict=True):
        seconds, busy, _ = zip(*each.line, strict=True)
        axes.plot(seconds, busy, color="#4477aa")
        axes.axhline(each.load.executors, color="0.5", linestyle="--")
        axes.set_title(each.load.name, loc="left", fontsize=10)
        axes.set_ylabel("busy executors")
        axes.set_ylim(0)
    axes.set_xlabel("seconds after the start of the package")
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "scale.png", dpi=110)
