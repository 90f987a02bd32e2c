"""Escape times as pictures."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from numpy.typing import NDArray


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


def save_stages(stages: list[Stage], path: Path) -> None:
    """All stages side by side, with their captions."""
    columns = min(3, len(stages))
    rows = -(-len(stages) // columns)
    height, width = stages[0].image.shape
    figure = Figure(figsize=(4 * columns, rows * (4 * height / width + 0.4)), layout="constrained", facecolor="0.93")
    FigureCanvasAgg(figure)
    for number, stage in enumerate(stages, 1):
        axes = figure.add_subplot(rows, columns, number)
        axes.imshow(colour(stage.image))
        axes.set_title(stage.caption, fontsize=9)
        axes.set_axis_off()
    figure.savefig(path, dpi=120)
