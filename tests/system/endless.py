"""Tasks that never end by themselves. This file imports little: executors import it within a task's time limit."""

import contextlib
import ctypes
import signal
import subprocess
import time
from collections.abc import Callable

Note = Callable[[int], None]
"""Records the id of a process that has to end with the task."""


def busy_loop(_note: Note) -> None:
    while True:
        pass


def hang_in_c(_note: Note) -> None:
    ctypes.PyDLL(None).sleep(1000)  # holds the interpreter's lock


def ignore_signals(_note: Note) -> None:
    every = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    signal.pthread_sigmask(signal.SIG_BLOCK, every)
    for number in every:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:  # the C library reserves some signals
            continue
    time.sleep(1000)


def swallow_exceptions(_note: Note) -> None:
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(1000)


def with_child(note: Note) -> None:
    child = subprocess.Popen(["sleep", "1000"])
    note(child.pid)
    child.wait()
