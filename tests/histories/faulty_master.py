"""`python -m histories.faulty_master` is a master whose disk may become slow, and whose machine's clock may be set.

The folder that FAULTS names has the file SLOW while the disk is slow, and in CLOCK by how many seconds the clock is
ahead.
"""

import errno
import os
import sys
import time
from pathlib import Path
from random import Random
from threading import Event
from typing import Final

FAULTS: Final = "CLOUDPAR_TEST_FAULTS"
"""The environment variable with the folder."""
SLOW, CLOCK = "slow disk", "clock"
BUG: Final = "CLOUDPAR_TEST_BUG"
"""The environment variable with the name of a bug that the master has. "": it has none."""
LONGEST_S: Final = 0.03
"""How long one operation takes at most."""


def main() -> int:
    """Run the master with these faults."""
    faults, usual = Path(os.environ[FAULTS]), time.time
    # Before any import of the master, which keeps a reference to this function.
    time.time = lambda: usual() + float((faults / CLOCK).read_bytes() or b"0")
    import pytest

    from cloudpar_master.__main__ import main as run_master
    from histories.bugs import BUGS
    from support.disk import Disk

    data = Path(sys.argv[sys.argv.index("--data") + 1])
    Disk(data, pytest.MonkeyPatch(), errno.EIO, lambda: delays(faults / SLOW))
    if bug := os.environ[BUG]:
        BUGS[bug](pytest.MonkeyPatch())
    return run_master()


def delays(slow: Path) -> bool:
    """Delay an operation while the file exists. It never fails."""
    if os.access(slow, os.F_OK):  # unlike Path.exists, no call that the disk replaces
        Event().wait(Random().random() * LONGEST_S)
    return False


if __name__ == "__main__":
    sys.exit(main())
