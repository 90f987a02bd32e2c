"""A master or an agent as a child process in the foreground: started, greeted, watched."""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Literal, NamedTuple

import click


class Event(NamedTuple):
    """What a command that waits for processes is told.

    `what` is "ready" or "ended" (then `code` is the exit status, negative for a signal) of the process `name`, or
    "asked": a signal, whose number is `code`, asks this command itself to end.
    """

    what: Literal["ready", "ended", "asked"]
    name: str
    code: int = 0


Events = SimpleQueue[Event]

_ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def listen_for_signals(events: Events) -> None:
    """Report the signals that ask a process to end, instead of ending."""
    for number in _ENDING:
        signal.signal(number, lambda number, _frame: events.put(Event("asked", signal.Signals(number).name, number)))


def log_line(text: str) -> None:
    """Write one dated line to standard error, which may be a log that is read days later."""
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} cloudpar: {text}", err=True)


class Process:
    """`python -m module` with one line of JSON on its standard input, which stays open: its end is the child's end."""

    def __init__(self, name: str, command: Sequence[str], greeting: Mapping[str, Any], events: Events) -> None:
        self.name = name
        self.command = command
        self._greeting = json.dumps(greeting).encode() + b"\n"
        self._events = events

    def start(self, pass_fds: Sequence[int] = ()) -> None:
        """Start it; "ready" and "ended" follow as events."""
        # A session of its own: Ctrl-C at the terminal is for this command, which ends its children in good order.
        # -P: files of the working folder must not take the place of modules that the child needs.
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", *self.command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=pass_fds, start_new_session=True, bufsize=0,
        )  # fmt: skip
        threading.Thread(target=self._watch, args=(self._child,), name=f"cloudpar-{self.name}", daemon=True).start()

    def _watch(self, child: "subprocess.Popen[bytes]") -> None:
        if child.stdin is None or child.stdout is None:
            raise AssertionError(self.name)
        with suppress(BrokenPipeError):  # it died at once; what follows reports that
            child.stdin.write(self._greeting)
        for line in child.stdout:
            if b'"ready"' in line:
                self._events.put(Event("ready", self.name))
        code = child.wait()
        child.stdout.close()
        child.stdin.close()
        self._events.put(Event("ended", self.name, code))

    def stop(self, *, at_once: bool = False) -> None:
        """Ask it to end. An agent drains first, unless it is to end at once."""
        self._child.send_signal(signal.SIGINT if at_once else signal.SIGTERM)
