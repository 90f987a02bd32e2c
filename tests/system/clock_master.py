"""`python -m system.clock_master` is a master on a machine whose clock a test sets, and otherwise the usual one."""

import os
import time
from pathlib import Path

AHEAD = "CLOUDPAR_TEST_CLOCK"
"""The environment variable that names a file. The file says by how many seconds the clock is ahead."""


def set_clock() -> None:
    """Let this process see the machine's clock as the file says."""
    path, true_time = Path(os.environ[AHEAD]), time.time

    def seen() -> float:
        return true_time() + float(path.read_text())

    time.time, time.time_ns = seen, lambda: int(seen() * 1e9)


if __name__ == "__main__":
    set_clock()
    import sys

    from cloudpar_master.__main__ import main  # it must not import the true clock first

    sys.exit(main())
