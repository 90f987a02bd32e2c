"""Runs the processes of a command in the foreground until a signal ends it."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue

import click

from cloudpar._local.child import Child, Event
from cloudpar._local.restart_policy import fate
from cloudpar_protocol.errors import CloudparError

from .presentation import printable

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def log_line(text: str) -> None:
    """Write a line with date and time to standard error, which may be a log that is read days later."""
    click.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S')} cloudpar: {printable(text)}", err=True)


class EndRequested(Exception):
    """A signal asks this command to end."""


class Foreground:
    """Waits for the next event of a child process (it is ready, or it has ended), or for a signal to this command."""

    def __init__(self) -> None:
        self._happened: SimpleQueue[Event | signal.Signals] = SimpleQueue()
        self._ready: set[str] = set()

    def listen_for_signals(self) -> None:
        """Make `next` raise EndRequested after a signal that asks this process to end."""
        for number in ENDING:
            signal.signal(number, lambda number, _frame: self._happened.put(signal.Signals(number)))

    def report(self, event: Event) -> None:
        """Receive an event of a child: log a restart, and keep any other event for `next`."""
        if event.what == "restarting":
            log_line(f"warning: the {event.name} ended ({fate(event.code)}); starting it again")
        else:
            self._happened.put(event)

    def next(self, timeout_s: float | None = None) -> Event:
        """Wait for the next event of a child.

        Raises:
            EndRequested: A signal asked this command to end.
            queue.Empty: Nothing happened for `timeout_s` seconds.
        """
        happened = self._happened.get(timeout=timeout_s)
        if isinstance(happened, signal.Signals):
            raise EndRequested
        return happened

    def wait_until_ready(self) -> str:
        """Wait until a child is ready, for the first time or after a restart; return its name.

        Raises:
            EndRequested: A signal asked this command to end.
            CloudparError: A child ended and is not restarted.
        """
        event = self.next()
        if event.what == "ended":
            problem = "keeps dying" if event.name in self._ready else "ended before it was ready"
            raise CloudparError(f"the {event.name} {problem} ({fate(event.code)}); it says why above")
        self._ready.add(event.name)
        return event.name

    @contextmanager
    def running(self, child: Child) -> Iterator[None]:
        """Start a child and wait until it is ready; end it after the body of the `with`.

        Raises:
            EndRequested: A signal asked this command to end.
            CloudparError: This child or an earlier one ended and is not restarted.
            OSError: The system cannot start the child.
        """
        child.start()
        try:
            while self.wait_until_ready() != child.name:
                pass
            yield
        finally:
            if child.exit_code is None:
                self.end(child)

    def end(self, child: Child) -> int:
        """Ask a child to end, and wait for its end.

        An agent first finishes its running tasks. If another signal arrives meanwhile, the child ends at once.

        Returns:
            The child's exit status; the negative number of a signal if this signal ended the child.
        """
        if child.name == "worker":
            click.echo("cloudpar: draining; Ctrl-C again stops at once", err=True)
        child.drain()
        while child.exit_code is None:
            if isinstance(self._happened.get(), signal.Signals):
                child.stop()
        return child.exit_code
