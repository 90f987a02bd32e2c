"""Processes that tests start."""

import subprocess
from typing import Any

from support.waiting import HANG_S

UNREAD_BYTES = 1 << 20
"""How many bytes of a process's output may wait until a test reads them. When the pipe is full, the process blocks, for
example a worker that reports each restart of its master."""


def stop(process: "subprocess.Popen[Any]", longest_s: float = HANG_S) -> None:
    """Send SIGTERM, and wait until the process has ended.

    Raises:
        TimeoutExpired: It has not ended within `longest_s`, and was killed.
    """
    if process.poll() is None:
        process.terminate()
    try:
        process.communicate(timeout=longest_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
