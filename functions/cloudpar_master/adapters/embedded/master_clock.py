"""The clock of an embedded master: it never goes back, and setting the machine's clock does not move it."""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from cloudpar_master.ports import Clock

from .database import Database
from .task_queue import MEMORY_S

MOST_AWAY_S = 86_400.0
"""From the end of one master process to the start of the next, the master's time moves by at most this many seconds. If
the machine's clock is wrong at one of these times, for example because it starts in 1970, packages get at most a day
older."""

SAVE_S = 30.0
"""The master saves its time once in this many seconds. If the master is killed, and the machine's clock is set back,
the next process repeats at most this many seconds of the master's time."""

JUMP_S = 5.0
"""If the difference between the machine's clock and the master's time changes by more than this many seconds, the
machine's clock was set."""

SHOWN_S = 0.001
"""If the difference between the machine's clock and the master's time changes by at most this many seconds, dates do
not follow the machine's clock. Dates are rounded to multiples of this number."""

REPEAT_S = 60.0
"""The log says at most once in this many seconds that the machine's clock was set."""

_SINCE_BOOT: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that counts the seconds since the machine's start, including those in which the machine sleeps. On Linux
CLOCK_MONOTONIC does not include the sleep; on macOS it does."""

_log = logging.getLogger("cloudpar_master")


class Saved(NamedTuple):
    """A moment: `at` in the master's time, and `date` by the machine's clock."""

    at: float
    date: float


def started_at(saved: Saved | None, date: float) -> float:
    """Return the master's time at the start of a process. If no time was saved, this is the machine's time (`date`).

    >>> started_at(None, 1_000.0)
    1000.0
    >>> started_at(Saved(500.0, 1_000.0), 1_060.0), started_at(Saved(500.0, 1_000.0), 10.0)
    (560.0, 500.0)
    >>> started_at(Saved(500.0, 1_000.0), 1e9)
    86900.0
    """
    return date if saved is None else saved.at + min(max(0.0, date - saved.date), MOST_AWAY_S)


class MasterClock(Clock):
    """Continues the time of the data folder's last master; `started_at` says how. Then it counts like `steady`.

    Args:
        database: Where the time is saved.
        machine: Returns the time of the machine's clock, in seconds since 1970, UTC. This clock may be set at any time.
        steady: Returns a number of seconds that never goes back, and also grows while the machine sleeps.

    Raises:
        sqlite3.Error: The database cannot be read.
    """

    def __init__(
        self,
        database: Database,
        machine: Callable[[], float] = time.time,
        steady: Callable[[], float] = lambda: time.clock_gettime(_SINCE_BOOT),
    ) -> None:
        self._db = database
        self._machine = machine
        self._steady = steady
        saved, date = _read(database), machine()
        self._ahead_s = started_at(saved, date) - steady()
        """How many seconds the master's time is ahead of `steady`."""
        self._difference_s = date - self.now() if saved is None else saved.date - saved.at
        """How many seconds the machine's clock was ahead of the master's time at the last warning. Before the first
        warning: when the last process saved its time, or, if none did, at the start of this process."""
        self._shown_s = float("-inf")
        """How many seconds dates are ahead of the master's time."""
        self._logged_at = self._saved_at = float("-inf")
        if saved is not None and date - saved.date > MOST_AWAY_S:
            self._difference_s = date - self.now()
            _log.warning(
                "by this machine's clock, no master ran on this folder for %.1f days: the master counts one of them, "
                "so that a wrong clock expires no packages",
                (date - saved.date) / MOST_AWAY_S,
            )

    def now(self) -> float:
        return self._ahead_s + self._steady()

    def date(self, at: float) -> float:
        shown_s = self._machine() - self.now()
        # The two clocks are read one after the other, and the time between the two reads differs. Without this
        # condition, the same moment would have a different date in each list.
        if abs(shown_s - self._shown_s) > SHOWN_S:
            self._shown_s = shown_s
        return round(at + self._shown_s, 3)

    def check(self) -> None:
        """Log a warning if the machine's clock was set, and save the time once in SAVE_S. Called each second.

        Raises:
            sqlite3.Error: The time cannot be saved. The next call tries again.
        """
        now = self.now()
        jump_s = self._machine() - now - self._difference_s
        was_set = abs(jump_s) > JUMP_S
        if was_set and now - self._logged_at >= REPEAT_S:
            self._difference_s += jump_s
            self._logged_at = now
            _log.warning(
                "this machine's clock was set %s by %.0f s: times in lists follow it; leases, retries and the times "
                "for which packages are kept go by the master's own time, which it does not move",
                "ahead" if jump_s > 0 else "back", abs(jump_s),
            )  # fmt: skip
        # Save the time also after a jump: if the master were killed before the next save, the next master would count
        # the jump as time in which no master ran.
        if was_set or now - self._saved_at >= SAVE_S:
            self.save()

    def save(self) -> None:
        """Save the time, for the next process.

        Raises:
            sqlite3.Error: The time cannot be saved.
        """
        now = self.now()
        self._db.execute("INSERT OR REPLACE INTO clock (id, at, date) VALUES (1, ?, ?)", (now, self.date(now)))
        self._saved_at = now


def _read(database: Database) -> Saved | None:
    """Return the time that the last process saved; None if there is none, or if an earlier release ran since then.

    A release before 0.4.0 uses the machine's clock and saves no time. If such a release has used the data folder after
    the time was saved, the queue's tables contain times that are later than the saved time. If the master then
    continued the saved time, leases could last for days.
    """
    row = database.execute("SELECT at, date FROM clock").fetchone()
    newest = "SELECT max(until) FROM (SELECT until FROM attempts UNION ALL SELECT until FROM sent_groups)"
    sent_at: float = (database.execute(newest).fetchone()[0] or 0.0) - MEMORY_S
    return None if row is None or sent_at > row[0] + 2 * SAVE_S else Saved(*row)
