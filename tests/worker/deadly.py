"""What a task does to its worker."""

import os
import signal
from pathlib import Path

_AGENT = b"\0-m\0cloudpar_worker\0--stdin\0"


def end_agent(_: object = None) -> None:
    """In a task: the end of the agent, whichever of its processes this one's parent is.

    Only of an agent: where another task was first, the way up leads past it to processes that are not the tests'.
    """
    pid = os.getppid()
    while pid > 1:
        above = Path(f"/proc/{pid}")
        if above.joinpath("cmdline").read_bytes().endswith(_AGENT):
            os.kill(pid, signal.SIGKILL)
            return
        pid = int(above.joinpath("stat").read_text().rpartition(")")[2].split()[1])
