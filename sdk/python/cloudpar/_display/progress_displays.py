"""Shows progress in a terminal, in a notebook, or as lines in a log file."""

import html
import sys
import time
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import uuid4

if TYPE_CHECKING:
    from rich.progress import TaskID

REDRAWN_S = 0.3
"""The shortest time between two updates of a notebook's bar, in seconds. Only the final update may come sooner. The
time is this long because each update is a message to the browser and stays in the notebook's file.
"""

LINES_S = 10.0
"""The shortest time between two progress lines of a package in a file or pipe, in seconds. Only the final line may come
sooner.
"""


class Bar(NamedTuple):
    """One package's progress.

    Attributes:
        label: The function's name, or the package's id.
        done: How many tasks have ended (at the end: how many results have arrived).
        tasks: How many tasks there are.
        state: How many errors and executors there are, or how many workers run and start, or (at the end) the number of
            errors and the time taken.
        left: The remaining time in words; empty if it is not known, and at the end.

    Example:
        >>> Bar("simulate", 3120, 10000, "0 errors, 4 executors", "3 min left").text()
        'simulate: 3,120 of 10,000, 0 errors, 4 executors, 3 min left'
    """

    label: str
    done: int
    tasks: int
    state: str
    left: str = ""

    def text(self) -> str:
        """The bar as one line of plain text."""
        return ", ".join(filter(None, (f"{self.label}: {self.done:,} of {self.tasks:,}", self.state, self.left)))


class Display(Protocol):
    """An output for progress. Only one thread at a time calls its methods."""

    def show(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar, or draw it again."""

    def end(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar for the last time, if it was drawn before."""

    def say(self, text: str) -> None:
        """Write a line above the bars."""


class Terminal:
    """Bars that move in a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}", markup=False),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(stderr=True),
        )
        self._bars: dict[Hashable, TaskID] = {}

    def show(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar, or draw it again."""
        if key in self._bars:
            self._progress.update(self._bars[key], completed=bar.done, state=bar.state, left=bar.left)
            return
        self._bars[key] = self._progress.add_task(
            bar.label, total=bar.tasks, completed=bar.done, state=bar.state, left=bar.left
        )
        self._progress.start()

    def end(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar for the last time, if it was drawn before. After the last bar, stop drawing."""
        task = self._bars.pop(key, None)
        if task is None:
            return
        self._progress.update(task, completed=bar.done, state=bar.state, left=bar.left)
        if not self._bars:
            self._progress.stop()

    def say(self, text: str) -> None:
        """Write a line above the bars."""
        self._progress.console.print(text, markup=False, highlight=False)


class Notebook:
    """Bars in the output of a notebook cell: HTML for browsers, plain text elsewhere. No widgets are needed."""

    def __init__(self) -> None:
        self._bars: dict[Hashable, tuple[str, float]] = {}

    def show(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar, or draw it again, unless it was drawn less than REDRAWN_S ago."""
        drawn, drawn_at = self._bars.get(key, ("", 0.0))
        now = time.monotonic()
        if drawn and now - drawn_at < REDRAWN_S:
            return
        name = drawn or uuid4().hex
        _publish(bar, name, again=bool(drawn))
        self._bars[key] = name, now

    def end(self, key: Hashable, bar: Bar) -> None:
        """Draw a bar for the last time, if it was drawn before."""
        name, _ = self._bars.pop(key, ("", 0.0))
        if name:
            _publish(bar, name, again=True)

    def say(self, text: str) -> None:
        """Write a line to the cell's output."""
        _write(text)


class Lines:
    """Plain lines on standard error, for example in a log file."""

    def __init__(self) -> None:
        self._written_at: dict[Hashable, float] = {}

    def show(self, key: Hashable, bar: Bar) -> None:
        """Write a line, unless the last line of this bar was written less than LINES_S ago."""
        now = time.monotonic()
        if now - self._written_at.get(key, -LINES_S) >= LINES_S:
            self._written_at[key] = now
            _write(bar.text())

    def end(self, key: Hashable, bar: Bar) -> None:
        """Write the final state of a bar, if a line of it was written before."""
        if self._written_at.pop(key, None) is not None:
            _write(bar.text())

    def say(self, text: str) -> None:
        """Write a line."""
        _write(text)


def _write(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook: Jupyter, Colab, VS Code or the like."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _publish(bar: Bar, name: str, *, again: bool) -> None:
    from IPython.display import display

    rest = ", ".join(filter(None, (f"{bar.done:,} of {bar.tasks:,}", bar.state, bar.left)))
    drawn = f'<progress value="{bar.done}" max="{bar.tasks}"></progress>'
    data = {
        "text/plain": bar.text(),
        "text/html": f"<div>{html.escape(bar.label)} {drawn} {html.escape(rest)}</div>",
    }
    display(data, raw=True, display_id=name, update=again)
