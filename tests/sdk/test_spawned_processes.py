"""Pools in processes that `multiprocessing` spawns, where the script's module is also called `__mp_main__`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import dataclasses, enum, functools, json, multiprocessing, sys

from cloudpar import Pool

OFFSET = 10

class Color(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Point:
    x: int
    color: Color = Color.RED

    @functools.cached_property
    def doubled(self):
        return 2 * self.x

class Refused(Exception):
    pass

@functools.lru_cache
def cached(x):
    return x + 1

def shifted(x):
    return x + OFFSET

def moved(point):
    return Point(shifted(point.x))

def refuse(x):
    raise Refused(x)

def fill(pool):
    out = [0] * 3
    def body(i):
        out[i] = shifted(i)
    pool.parallel_for(0, 3, body)
    return out

def changed(pool):
    global OFFSET
    before = pool.submit(shifted, 1).result()
    OFFSET = 20
    return [before, pool.submit(shifted, 1).result()]

def child(sink):
    found = {"module": shifted.__module__}
    with Pool("local", workers=1) as pool:
        found["map"] = list(pool.map(shifted, range(3)))
        points = list(pool.map(moved, [Point(1), Point(2)]))
        found["points"] = [[type(each) is Point, each.color is Color.RED, each.x, each.doubled] for each in points]
        found["part"] = pool.submit(functools.partial(moved, Point(3))).result().x
        found["cached"] = pool.submit(cached, 4).result()
        found["fill"] = fill(pool)
        found["changed"] = changed(pool)
        try:
            pool.submit(refuse, 5).result()
        except Refused as error:
            found["refused"] = error.args[0]
        found["retried"] = [type(each) is Refused for each in pool.map(
            refuse, [1], retries=1, retry_on=Refused, return_exceptions=True)]
    sink.send(found)

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(there,))
    process.start()
    there.close()
    print(json.dumps(here.recv()))
    process.join()
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_spawned_process_sends_what_its_script_defines(tmp_path: Path, method: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run([sys.executable, script, method], capture_output=True, check=False, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == {
        "module": "__mp_main__",
        "map": [10, 11, 12],
        "points": [[True, True, 11, 22], [True, True, 12, 24]],
        "part": 13,
        "cached": 5,
        "fill": [10, 11, 12],
        "changed": [11, 21],
        "refused": 5,
        "retried": [True],
    }
