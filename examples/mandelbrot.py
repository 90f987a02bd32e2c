"""A Mandelbrot image, tile by tile, while workers join, crash and leave.

    .venv/bin/python examples/mandelbrot.py

starts a master without executors (`cloudpar up --workers 0`) and, from time to time, a worker of its own
(`cloudpar worker`). One of them is killed in the middle of its work, another is told to leave. The image is complete
all the same: mandelbrot.png, and in mandelbrot-stages.png one sees it grow, and who rendered which tile.
"""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from cluster import Cluster
from contact_sheet import Stage, save_image, save_sheet
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cloudpar import Pool

CENTRE, SPAN = complex(-0.743643887, 0.131825904), 0.0055


class Tile(NamedTuple):
    """A square of the image: its upper left corner and its size in pixels."""

    left: int
    top: int
    width: int
    height: int


class Canvas(NamedTuple):
    """The whole image, in pixels, and when a point counts as never escaping."""

    width: int
    height: int
    iterations: int


def cut(canvas: Canvas, size: int) -> list[Tile]:
    """All tiles, row by row."""
    return [
        Tile(left, top, min(size, canvas.width - left), min(size, canvas.height - top))
        for top in range(0, canvas.height, size)
        for left in range(0, canvas.width, size)
    ]


def render(tile: Tile, canvas: Canvas) -> tuple[Tile, NDArray[np.float32], int]:
    """The escape times of a tile's pixels, and the number of the worker that computed them. This runs there."""
    x = (np.arange(tile.left, tile.left + tile.width) - canvas.width / 2) / canvas.width * SPAN
    y = (np.arange(tile.top, tile.top + tile.height) - canvas.height / 2) / canvas.width * SPAN
    c = (CENTRE + x[np.newaxis, :] + 1j * y[:, np.newaxis]).ravel()
    escaped = np.full(c.shape, float(canvas.iterations), dtype=np.float32)
    where, z = np.arange(c.size), c.copy()
    for step in range(canvas.iterations):
        z = z * z + c[where]
        size = np.abs(z)
        out = size > 4.0
        # Fractional escape times make the colours smooth.
        escaped[where[out]] = step + 1 - np.log2(np.log(size[out]))
        where, z = where[~out], z[~out]
        if not where.size:
            break
    return tile, escaped.reshape(tile.height, tile.width), int(os.environ["WORKER"])


def events(cluster: Cluster, tiles: int) -> dict[int, tuple[str, Callable[[], None]]]:
    """What happens to the workers when so many tiles are done."""
    return {
        tiles * 1 // 6: ("worker 3 joins", cluster.add_worker),
        tiles * 2 // 6: ("worker 1 is killed", lambda: cluster.kill_worker(1)),
        tiles * 3 // 6: ("worker 4 joins", cluster.add_worker),
        tiles * 4 // 6: ("worker 2 leaves", lambda: cluster.drain_worker(2)),
        tiles * 5 // 6: ("3 and 4 go on", lambda: None),
    }


@click.command()
@click.option("--width", default=1200, show_default=True)
@click.option("--height", default=800, show_default=True)
@click.option("--tile", "tile_size", default=50, show_default=True)
@click.option("--iterations", default=2000, show_default=True)
@click.option("--output", type=click.Path(path_type=Path), default=Path("mandelbrot.png"), show_default=True)
def main(width: int, height: int, tile_size: int, iterations: int, output: Path) -> None:
    """Render it, with a cluster that does not keep still."""
    canvas = Canvas(width, height, iterations)
    tiles = cut(canvas, tile_size)
    image: NDArray[np.float32] = np.full((height, width), np.nan, dtype=np.float32)
    workers = np.zeros((height, width), dtype=np.int8)
    stages: list[Stage] = []
    with (
        tempfile.TemporaryDirectory(prefix="mandelbrot-") as folder,
        Cluster(Path(folder)) as cluster,
        Pool(cluster.endpoint, cluster.token, progress=False) as pool,
        _progress() as bar,
    ):
        cluster.add_worker()
        cluster.add_worker()
        task = bar.add_task("2 workers", total=len(tiles))
        upcoming = events(cluster, len(tiles))
        for done, (tile, pixels, worker) in enumerate(pool.map_unordered(render, tiles, [canvas] * len(tiles)), 1):
            place = slice(tile.top, tile.top + tile.height), slice(tile.left, tile.left + tile.width)
            image[place], workers[place] = pixels, worker
            bar.update(task, completed=done)
            if done in upcoming:
                name, happen = upcoming.pop(done)
                stages.append(Stage(f"{done} of {len(tiles)} tiles: {name}", image.copy()))
                bar.update(task, description=name)
                happen()
    stages.append(Stage(f"{len(tiles)} of {len(tiles)} tiles: complete", image))
    save_image(image, output)
    sheet = output.with_stem(f"{output.stem}-stages")
    save_sheet(stages, workers, sheet)
    print(f"{len(tiles)} tiles, by workers {', '.join(map(str, np.unique(workers)))}")
    print(f"{output} and {sheet}")


def _progress() -> Progress:
    columns = (TextColumn("{task.description:20}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=Console(stderr=True))


if __name__ == "__main__":
    main()
