"""Measures how long users wait at the start: for the import, for a new pool's first result, and for a master."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from .cluster import environment, timed
from .figures import REPEATS, Figure, Part, Reading

IMPORT = Figure("import", "import cloudpar, above bare Python", "ms", 150.0)
COLD = Figure("cold-pool", "first result of a cold Pool(), imports included", "s", 1.5)
MASTER = Figure("master-ready", "a master on new data, ready", "s", 0.8)

IMPORTS = 5

COLD_POOL = """
import time
began = time.perf_counter()
from {module} import {pool}
if __name__ == "__main__":
    pool = {pool}()
    assert pool.submit(abs, -1).result() == 1
    print(time.perf_counter() - began, flush=True)
    pool.shutdown()
"""


def python(*arguments: str) -> str:
    """Run an interpreter to its end, and return what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True).stdout


def import_ms(module: str) -> float:
    """Return how much longer an interpreter runs, in ms, if it imports the module. Each time is the best of IMPORTS."""
    bare, full = [], []
    for _ in range(IMPORTS):
        bare.append(timed(lambda: python("-c", "pass")))
        full.append(timed(lambda: python("-c", f"import {module}")))
    return (min(full) - min(bare)) * 1000


def cold_s(module: str, pool: str) -> float:
    """Return the seconds from the import to the first result of a new pool, in a process of its own."""
    return float(python("-c", COLD_POOL.format(module=module, pool=pool)))


def master_s() -> float:
    """Return the seconds from the start of a master's process, on new data, to its ready line."""
    with tempfile.TemporaryDirectory(prefix="cloudpar-bench-") as folder:
        began = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-m", "cloudpar_master", "--data", folder, "--port", "0"], stdout=subprocess.PIPE
        ) as master:
            assert master.stdout is not None
            assert b"ready" in master.stdout.readline()
            ready_s = time.perf_counter() - began
            master.terminate()
    return ready_s


def run() -> Iterator[Reading]:
    python("-c", "import cloudpar")  # loads the files from the disk into memory
    for _ in range(REPEATS):
        yield Reading(IMPORT.name, import_ms("cloudpar"), import_ms("concurrent.futures.process"))
        yield Reading(COLD.name, cold_s("cloudpar", "Pool"), cold_s("concurrent.futures", "ProcessPoolExecutor"))
        yield Reading(MASTER.name, master_s())


PART = Part((IMPORT, COLD, MASTER), run)
