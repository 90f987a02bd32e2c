"""What a task can do to its worker."""

import os
import signal
from pathlib import Path

_AGENT = b"\0-m\0cloudpar_worker\0--stdin\0"


def end_agent(_: object = None) -> None:
    """Kill the agent from inside a task, whichever of its processes is the parent of this one.

    It stops at the agent. If another task was first, the parents of this process may not belong to the tests.
    """
    pid = os.getppid()
    while pid > 1:
        above = Path(f"/proc/{pid}")
        if above.joinpath("cmdline").read_bytes().endswith(_AGENT):
            os.kill(pid, signal.SIGKILL)
            return
        pid = int(above.joinpath("stat").read_text().rpartition(")")[2].split()[1])
