"""Chooses whose chunk is handed out next: accounts take turns, and within an account its packages do.

Source: start-time fair queueing (Goyal, Vin and Cheng, 1996). The account that has received the least work is next. A
new account starts with the count of the waiting account that has received the least. Therefore it need not wait because
other accounts came earlier, and gets no extra work for the time before it came.
"""

from collections.abc import Collection
from typing import NamedTuple

from .recent import Recent
from .virtual_time import REMEMBERED, VirtualTime

ALLOWANCE_US = 1_000_000
"""The largest lead (VirtualTime.lead_us), in microseconds, with which a package's first chunk goes before all other
chunks. Both the lead of its account among the accounts and the lead of first chunks within its account must be at most
this large. Otherwise first chunks take turns like all others, so that a stream of small packages does not stop a long
package."""

STAY_S = 5.0
"""For how many seconds a worker that has changed to an account gets more chunks of this account before those of others.
An executor serves one account, so a worker starts new executors for each change, which may take more than a second on a
busy machine. The time starts with the change. When it is over, the worker gets chunks of the account whose turn it
is."""

AHEAD_US = ALLOWANCE_US // 2
"""A worker stays with an account only while the account is at most this many microseconds ahead of the others.
Therefore a large worker does not give all its executors to one account, and the rest of ALLOWANCE_US is left for the
first chunks of the account's next packages."""

_FIRST_CHUNKS = ""
"""The key under which the first chunks of all packages of an account take turns, as if they belonged to one package."""


class Line(NamedTuple):
    """The waiting chunks of one package, described by the oldest of them.

    Attributes:
        number: The number of the oldest chunk's message. Older messages have smaller numbers.
        first: Whether the oldest chunk starts with the first task of its package.
        cost_us: The likely time for which the oldest chunk keeps an executor busy, in microseconds.
    """

    number: int
    account: str
    package: str
    first: bool
    cost_us: int

    @property
    def flow(self) -> str:
        """The key under which these chunks take turns with other chunks of their account."""
        return _FIRST_CHUNKS if self.first else self.package


class Served(NamedTuple):
    """The account that a worker serves, and the time of the worker's change to it, in seconds."""

    account: str
    since_s: float


class Turns:
    """Decides whose turn it is; the queue keeps the chunks.

    After a restart of the master, all accounts and packages count as new, which does no harm.
    """

    def __init__(self) -> None:
        self._accounts = VirtualTime()
        self._packages: dict[str, VirtualTime] = {}
        self._served = Recent[str, Served](REMEMBERED)

    def take(self, lines: Collection[Line], worker_id: str, now_s: float) -> Line:
        """Choose one of the lines, and count its oldest chunk as handed out. There must be at least one line.

        Args:
            lines: The waiting chunks that the worker can take.
            worker_id: The worker that gets the chunk; "" if it is not known.
            now_s: The time, in seconds.
        """
        by_account: dict[str, list[Line]] = {}
        for line in lines:
            by_account.setdefault(line.account, []).append(line)
        self._accounts.advance(by_account)
        for account, own in by_account.items():
            self._packages_of(account).advance(line.flow for line in own)
        chosen = self._first_chunk(by_account) or self._in_turn(self._kept(by_account, worker_id, now_s))
        self._charge(chosen)
        self._note(worker_id, chosen.account, now_s)
        return chosen

    def give_back(self, line: Line) -> None:
        """Take back the charge for a chunk of which a worker gave back all tasks.

        The new chunks with these tasks are charged when they are handed out. If the first charge stayed, a short
        package that the first worker cannot run would wait behind a long package that it should overtake.
        """
        self._accounts.refund(line.account, line.cost_us)
        self._packages_of(line.account).refund(line.flow, line.cost_us)

    def _first_chunk(self, by_account: dict[str, list[Line]]) -> Line | None:
        """Return the line whose first chunk goes before all other chunks; None if no line has such a chunk."""
        found = [line for own in by_account.values() for line in own if line.first and self._within_allowance(line)]
        return min(found, key=lambda line: (self._accounts.start_us(line.account), line.number), default=None)

    def _within_allowance(self, line: Line) -> bool:
        lead_us = max(self._accounts.lead_us(line.account), self._packages_of(line.account).lead_us(_FIRST_CHUNKS))
        return lead_us <= ALLOWANCE_US

    def _kept(self, by_account: dict[str, list[Line]], worker_id: str, now_s: float) -> dict[str, list[Line]]:
        """Return the lines for a worker's next chunk: only those of its account during its stay (STAY_S), or all."""
        served = self._served.get(worker_id)
        if served is None or served.account not in by_account or not 0 <= now_s - served.since_s < STAY_S:
            return by_account
        ahead_us = self._accounts.start_us(served.account) - self._accounts.now_us
        return {served.account: by_account[served.account]} if ahead_us <= AHEAD_US else by_account

    def _note(self, worker_id: str, account: str, now_s: float) -> None:
        served = self._served.get(worker_id)
        if worker_id and (served is None or served.account != account):
            self._served[worker_id] = Served(account, now_s)

    def _in_turn(self, by_account: dict[str, list[Line]]) -> Line:
        def standing(account: str) -> tuple[int, int]:
            return self._accounts.start_us(account), min(line.number for line in by_account[account])

        account = min(by_account, key=standing)
        time = self._packages_of(account)
        return min(by_account[account], key=lambda line: (time.start_us(line.flow), line.number))

    def _charge(self, line: Line) -> None:
        self._accounts.charge(line.account, line.cost_us)
        self._packages_of(line.account).charge(line.flow, line.cost_us)
        if len(self._packages) > REMEMBERED:
            del self._packages[next(iter(self._packages))]

    def _packages_of(self, account: str) -> VirtualTime:
        return self._packages.setdefault(account, VirtualTime())
