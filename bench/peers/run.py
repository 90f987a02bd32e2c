"""One measurement, in a process of its own: `python -m bench.peers.run ENGINE ROW [TASKS SIZE_BYTES TASK_MS]`.

It prints one JSON object: the figures, or the error. It imports little, so that a cold start finds nothing imported.
"""

import json
import os
import signal
import sys
import traceback

from . import engines, rows
from .processes import adopt_orphans, end_descendants

EXITS_WITHIN_S = 10
"""How long the process may take to exit after its measurement. A library may have left a thread that does not end."""

CLEANS_UP_WITHIN_S = 3.0
"""How long processes of a library may live on. Some remove files when the process that uses the files has ended."""


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


def main() -> int:
    """Measure in a child, and end all processes that it leaves behind, also after a crash.

    Both processes adopt orphans: the child, so that it counts their memory, and this one for the time after the child.
    """
    adopt_orphans()
    child = os.fork()
    if child == 0:
        adopt_orphans()
        code = measure(*sys.argv[1:])
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(EXITS_WITHIN_S)
        return code
    _, status = os.waitpid(child, 0)
    end_descendants(os.getpid(), CLEANS_UP_WITHIN_S)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        print(f"killed by signal {-code} ({signal.strsignal(-code)})", file=sys.stderr)
    return abs(code)


if __name__ == "__main__":
    sys.exit(main())
