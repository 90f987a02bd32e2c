"""The processes of this machine, or of the container of it that we are in."""

import os
from collections.abc import Iterator
from typing import NamedTuple


class Process(NamedTuple):
    """What anybody may know of one."""

    pid: int
    parent: int
    user: int
    threads: int


def processes() -> Iterator[Process]:
    """All of them."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib would be imported for this alone
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/status") as file:  # noqa: PTH123
                status = dict(line.split(":", 1) for line in file if ":" in line)
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
        threads = int(status.get("Threads", 0))
        yield Process(int(name), int(status["PPid"]), int(status["Uid"].split()[0]), threads)
