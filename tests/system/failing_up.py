"""`python -m system.failing_up up ...` is `cloudpar up`; the disk of its master fails while the file BROKEN exists."""

import errno
import os
import sys
from pathlib import Path

import pytest

from cloudpar._local import child
from cloudpar.cli import main
from cloudpar_master.__main__ import main as run_master
from support.disk import Disk

BROKEN = "BROKEN_DISK"
"""Names the environment variable with the path of the file."""


def _broken_master() -> int:
    data, broken = Path(sys.argv[sys.argv.index("--data") + 1]), Path(os.environ[BROKEN])
    Disk(data, pytest.MonkeyPatch(), errno.EIO, broken.exists)
    return run_master()


if __name__ == "__main__":
    if "--data" in sys.argv and "--listen-fd" in sys.argv:
        sys.exit(_broken_master())
    start = child.Child.__init__

    def start_this(self: child.Child, name: str, command: list[str], *rest: object, **more: object) -> None:
        if name == "master":
            command = ["system.failing_up", *command[1:]]
        start(self, name, command, *rest, **more)  # type: ignore[arg-type]

    child.Child.__init__ = start_this  # type: ignore[assignment, method-assign]
    main()
