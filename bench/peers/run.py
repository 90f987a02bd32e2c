"""One measurement, in a process of its own: `python -m bench.peers.run ENGINE ROW [TASKS SIZE_BYTES TASK_MS]`.

It prints one JSON object: the figures, or the error. It imports little, so that a cold start finds nothing imported.
"""

import json
import os
import sys
import traceback

from . import engines, rows
from .processes import in_a_child


def measure(engine: str, row: str, *load: str) -> int:
    """Measure, print, and return the exit code."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what libraries print must not get into the JSON object
        chosen = rows.BY_NAME[row]
        work = rows.Load.from_arguments(load) if load else chosen.load
        try:
            said: dict[str, object] = {"figures": chosen.run(engines.BY_NAME[engine].open(), work)}
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and the other ones are still measured
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=out)
    return 1 if "error" in said else 0


if __name__ == "__main__":
    sys.exit(in_a_child(lambda: measure(*sys.argv[1:])))
