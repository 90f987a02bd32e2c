"""A parameter study that resumes where it was interrupted.

    pip install .
    python examples/parameter_study.py results.jsonl

Interrupt it by Ctrl-C, or switch the machine off, and start it again: what is in the file is not computed again. The
model is a population with a birth rate and a harvest; the study finds for which pairs the population survives.
"""

import argparse
import json
from itertools import product
from pathlib import Path

from cloudpar import Pool

Point = tuple[float, float]


def survives(point: Point, years: int) -> tuple[Point, int]:
    """The point, since results come in any order, and the year in which the population ends, or `years`."""
    growth, harvest = point
    population = 0.5
    for year in range(years):
        population += growth * population * (1 - population) - harvest
        if population <= 0:
            return point, year
    return point, years


def finished(path: Path) -> set[Point]:
    """The points in the file. Its last line may be cut off by a crash: then that point is computed again."""
    points: set[Point] = set()
    if path.exists():
        text = path.read_text()
        whole = text[: text.rfind("\n") + 1]
        path.write_text(whole)
        points = {(entry["growth"], entry["harvest"]) for entry in map(json.loads, whole.splitlines())}
    return points


def main() -> None:
    """Compute the points that are missing, and add each to the file as soon as it is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--points", type=int, default=40, help="values of each parameter")
    parser.add_argument("--years", type=int, default=20_000)
    arguments = parser.parse_args()
    steps = [number / arguments.points for number in range(1, arguments.points + 1)]
    grid: list[Point] = [(3 * growth, harvest / 2) for growth, harvest in product(steps, steps)]
    known = finished(arguments.file)
    missing = [point for point in grid if point not in known]
    print(f"{len(known)} of {len(grid)} points are known, {len(missing)} are computed")
    years: int = arguments.years
    with arguments.file.open("a") as file, Pool() as pool:
        for (growth, harvest), year in pool.map_unordered(lambda point: survives(point, years), missing):
            file.write(json.dumps({"growth": growth, "harvest": harvest, "year": year}) + "\n")
            file.flush()
    years_of = [json.loads(line)["year"] for line in arguments.file.read_text().splitlines()]
    print(f"the population survives at {years_of.count(years)} of {len(years_of)} points")


if __name__ == "__main__":
    main()
