"""A task that leaves a daemon. It is in a module with few imports, which a worker can import anywhere."""

import os
import socket
import time

from worker.isolation.leaving import stay


def report(place: tuple[str, int]) -> None:
    """Send the id of this process to a server."""
    with socket.create_connection(place) as line:
        line.sendall(str(os.getpid()).encode())


def leave_a_daemon(place: tuple[str, int]) -> None:
    """Leave a daemon that ignores signals, and never return. Both processes report their ids."""
    stay(lambda _: report(place))
    report(place)
    while True:
        time.sleep(3600)
