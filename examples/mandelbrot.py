"""A Mandelbrot image, tile by tile, while workers join, crash and leave.

    pip install '.[plot]'
    python examples/mandelbrot.py

starts a master without executors (`cloudpar up --workers 0`) and, from time to time, a worker of its own
(`cloudpar worker`). One worker is killed in the middle of its work, another is asked to leave. The image is complete
all the same: mandelbrot.png, and in mandelbrot-workers.png the worker that rendered each tile.
"""

import argparse
import os
from collections.abc import Callable
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from cluster import Cluster
from matplotlib.image import imsave
from numpy.typing import NDArray

CENTRE, SPAN = complex(-0.743643887, 0.131825904), 0.0055


def render(corner: tuple[int, int], width: int, tile: int, steps: int) -> tuple[NDArray[np.float32], int]:
    """The escape times of a tile's pixels, and the number of the worker that computed them."""
    left, top = corner
    x, y = np.meshgrid(np.arange(left, left + tile) / width - 0.5, np.arange(top, top + tile) / width - 1 / 3)
    c = CENTRE + SPAN * (x + 1j * y).ravel()
    escaped = np.full(c.shape, steps, dtype=np.float32)
    where, z = np.arange(c.size), c.copy()
    for step in range(steps):
        z = z * z + c[where]
        out = np.abs(z) > 4.0
        escaped[where[out]] = step + 1 - np.log2(np.log(np.abs(z[out])))  # fractions make the colours smooth
        where, z = where[~out], z[~out]
    return escaped.reshape(tile, tile), int(os.environ["WORKER"])


def events(cluster: Cluster, tiles: int) -> dict[int, tuple[str, Callable[[], None]]]:
    """What happens to the workers, by the number of tiles that are done then."""
    return {
        tiles // 5: ("worker 3 joins", cluster.add_worker),
        2 * tiles // 5: ("worker 1 is killed", lambda: cluster.kill_worker(1)),
        3 * tiles // 5: ("worker 2 leaves", lambda: cluster.drain_worker(2)),
    }


def main() -> None:
    """Render it, with workers that come and go."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tile", type=int, default=50, help="pixels of a tile's side; the image has 24 x 16 tiles")
    parser.add_argument("--steps", type=int, default=2000)
    arguments = parser.parse_args()
    tile, steps = arguments.tile, arguments.steps
    width, height = 24 * tile, 16 * tile
    corners = list(product(range(0, width, tile), range(0, height, tile)))
    image, workers = np.zeros((height, width), dtype=np.float32), np.zeros((height, width), dtype=np.int8)
    with TemporaryDirectory() as folder, Cluster(Path(folder)) as cluster, cluster.pool() as pool:
        cluster.add_worker()
        cluster.add_worker()
        upcoming = events(cluster, len(corners))
        results = pool.map_unordered(lambda corner: (corner, *render(corner, width, tile, steps)), corners)
        for done, ((left, top), pixels, worker) in enumerate(results, 1):
            place = slice(top, top + tile), slice(left, left + tile)
            image[place], workers[place] = pixels, worker
            if done in upcoming:
                what, act = upcoming[done]
                print(f"{done} of {len(corners)} tiles: {what}", flush=True)
                act()
    imsave("mandelbrot.png", np.log1p(image - image.min()), cmap="twilight_shifted")
    imsave("mandelbrot-workers.png", workers, cmap="tab10", vmin=0, vmax=9)
    print(f"{len(corners)} tiles, by workers {', '.join(map(str, np.unique(workers)))}")


if __name__ == "__main__":
    main()
