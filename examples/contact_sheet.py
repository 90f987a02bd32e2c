"""Escape times as pictures."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray

COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
"""Of the workers, as an eye without red or green tells them apart."""


class Stage(NamedTuple):
    """The image at one moment; what is not there yet is not a number."""

    caption: str
    image: NDArray[np.float32]


def colour(image: NDArray[np.float32]) -> NDArray[np.float64]:
    """Red, green, blue and opacity of each pixel; transparent where it is not rendered yet."""
    there = np.isfinite(image)
    low, high = (float(image[there].min()), float(image[there].max())) if there.any() else (0.0, 1.0)
    shade = np.log1p(np.where(there, image, low) - low) / max(np.log1p(high - low), 1e-9)
    rgba: NDArray[np.float64] = colormaps["twilight_shifted"](shade)
    rgba[..., 3] = there
    return rgba


def save_image(image: NDArray[np.float32], path: Path) -> None:
    """The picture itself."""
    imsave(path, colour(image))


def save_sheet(stages: list[Stage], workers: NDArray[np.int8], path: Path) -> None:
    """All stages side by side, and at last which worker rendered which part (0: none)."""
    columns = min(4, len(stages) + 1)
    rows = -(-(len(stages) + 1) // columns)
    height, width = workers.shape
    figure = Figure(figsize=(4 * columns, rows * (4 * height / width + 0.45)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = list(figure.subplots(rows, columns, squeeze=False).flat)
    for axes, stage in zip(panels, stages, strict=False):
        _missing_as_hatches(axes)
        _show(axes, colour(stage.image), stage.caption)
    _show(panels[len(stages)], _by_worker(workers), "who rendered what")
    _name_workers(panels[len(stages)], workers)
    for axes in panels[len(stages) + 1 :]:
        axes.set_axis_off()
    figure.savefig(path, dpi=100)


def _show(axes: Axes, picture: NDArray[np.float64], caption: str) -> None:
    axes.imshow(picture)
    axes.set_title(caption, fontsize=12)
    axes.set(xticks=[], yticks=[])


def _missing_as_hatches(axes: Axes) -> None:
    """What is not rendered yet must not look like a part of the image, which has pale places of its own."""
    axes.add_patch(
        Rectangle((0, 0), 1, 1, transform=axes.transAxes, facecolor="white", edgecolor="0.7", hatch="////", zorder=-1)
    )


def _by_worker(workers: NDArray[np.int8]) -> NDArray[np.float64]:
    colours: NDArray[np.float64] = np.array([(1.0, 1.0, 1.0, 1.0), *map(to_rgba, COLOURS)])
    return colours[workers]


def _name_workers(axes: Axes, workers: NDArray[np.int8]) -> None:
    names = []
    for number in np.unique(workers[workers > 0]):
        part = 100 * np.mean(workers == number)
        names.append(Patch(color=COLOURS[number - 1], label=f"worker {number}: {part:.0f} %"))
    legend = axes.legend(handles=names, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=12, frameon=False)
    legend.set_in_layout(False)  # it stands in the next panel's place
