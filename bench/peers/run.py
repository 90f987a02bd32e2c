"""One measurement, in a process of its own: `python -m bench.peers.run ENGINE ROW [TASKS SIZE_BYTES]`.

It prints one JSON object: the figures, or the error. It imports little, so that a cold start finds nothing imported.
"""

import json
import os
import sys
import traceback
from dataclasses import replace

from . import engines, rows
from .processes import adopt_orphans, end_descendants


def main(engine: str, row: str, *load: str) -> int:
    """Measure, print, and return the exit code."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what libraries print must not get into the JSON object
        adopt_orphans()
        chosen = rows.BY_NAME[row]
        work = replace(chosen.load, tasks=int(load[0]), size_bytes=int(load[1])) if load else chosen.load
        try:
            said: dict[str, object] = {"figures": chosen.run(engines.BY_NAME[engine].open(), work)}
        except Exception as error:  # noqa: BLE001 - a library may raise anything, and the other ones are still measured
            traceback.print_exc()
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), file=out)
    return 1 if "error" in said else 0


if __name__ == "__main__":
    # What a library leaves behind, processes or threads, must neither stay nor keep this process.
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    end_descendants(os.getpid())
    os._exit(code)
