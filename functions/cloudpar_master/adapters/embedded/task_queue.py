from collections.abc import Callable, Collection, Sequence

from cloudpar_master.core.turns import Line, Turns
from cloudpar_master.ports import LARGEST_RECEIVES, Clock, Fit, Ids, Message, Needs, Sending, TaskQueue
from cloudpar_master.ports.task_queue import ANY, NO_STAY, Stay

from .database import Database

MEMORY_S = 300.0
"""Seconds for which the queue drops further messages of a group, and for which an attempt can be repeated."""

COUNTED = 1_000
"""`waiting` stops counting at this number of messages: no caller needs to know how many more wait. `waiting_needs`
returns at most COUNTED entries, or one for each package if more than COUNTED packages have waiting messages."""


_TURN = Line._fields[1:]
_LINE = ", ".join(("id", *_TURN))
_OLDEST = f"SELECT {_LINE}, python FROM messages WHERE state = 'waiting'"
_LINES = f"""
WITH RECURSIVE lines ({_LINE}, python) AS (
    SELECT * FROM ({_OLDEST} ORDER BY account, package, id LIMIT 1)
    UNION ALL
    SELECT {", ".join(f"next.{name}" for name in ("id", *_TURN, "python"))} FROM lines JOIN messages AS next
    ON next.id = coalesce(
        (SELECT id FROM messages WHERE state = 'waiting' AND account = lines.account AND package > lines.package
            ORDER BY package, id LIMIT 1),
        (SELECT id FROM messages WHERE state = 'waiting' AND account > lines.account
            ORDER BY account, package, id LIMIT 1)
    )
)
SELECT {_LINE}, python FROM lines
"""
"""Selects the oldest waiting message of each package. The cost depends on the number of packages and not on the number
of messages: SQLite looks into an index once for each package."""

_INSERT = (
    f"INSERT INTO messages (state, body, group_name, visible_at, python, {', '.join(_TURN)})"
    f" VALUES ('waiting', ?, ?, ?, ?{', ?' * len(_TURN)})"
)


class SqliteTaskQueue(TaskQueue):
    """The queue as a table. Accounts and packages take turns. Within a package the oldest waiting message is next.

    A message waits, is hidden (a worker has it), or is dead (it was delivered too often). A hidden message is hidden
    until its `visible_at`; a waiting message has waited since its `visible_at`. An index over the hidden messages finds
    those whose `visible_at` has passed, so that no call reads all messages.

    After each `send` that stored new messages, the queue calls `sent` with the needs of these messages.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        ids: Ids,
        sent: Callable[[Sequence[Needs]], None] = lambda _needs: None,
    ) -> None:
        self._db = database
        self._clock = clock
        self._ids = ids
        self._sent = sent
        self._turns = Turns()
        self._swept_at = 0.0

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        now = self._clock.now()
        sent: list[Needs] = []
        with self._db.transaction():
            if abs(now - self._swept_at) > MEMORY_S / 5:
                self._sweep(now)
            for message in messages:
                if self._first(message.group, now):
                    turn = [getattr(message, name) for name in _TURN]
                    self._db.execute(_INSERT, (message.body, message.group, now, message.python, *turn))
                    sent.append(Needs(message.account, message.package, message.python))
        if sent:
            self._sent(sent)
        return [True] * len(messages)

    def receive(
        self,
        limit: int,
        visibility_s: float,
        attempt_id: str,
        besides: Collection[str] = (),
        fit: Fit = ANY,
        *,
        stay: Stay = NO_STAY,
        again: bool = False,
        express: bool = True,
        sent: bool = False,
    ) -> list[Message]:
        """See the port. Returns only messages that fit. A repeated attempt gets its earlier messages again."""
        del again, express, sent  # there is one queue, which is always looked at as a whole
        now = self._clock.now()
        with self._db.transaction():
            self._surface(now)
            # A worker repeats a retrieval whose answer was lost. If the repeated retrieval got other chunks, the first
            # chunks would stay hidden until their leases end.
            before = self._repeat(attempt_id, now)
            if before:
                self._hide([message.receipt for message in before], now + visibility_s)
                return before
            lines = {
                line.number: line
                for line, python in self._lines()
                if line.package not in besides and fit.takes(Needs(line.account, line.package, python))
            }
            messages: list[Message] = []
            while lines and len(messages) < limit:
                line = self._turns.take(lines.values(), stay.of(len(messages)), now)
                messages.append(self._take(line.number, now, visibility_s, attempt_id))
                del lines[line.number]
                select = f"{_OLDEST} AND (account, package) = (?, ?) ORDER BY id LIMIT 1"
                row = self._db.execute(select, (line.account, line.package)).fetchone()
                if row is not None:
                    lines[row[0]] = Line(*row[:-1])
            return messages

    def passed_over(self, fit: Fit) -> list[str]:
        lines = self._lines()
        found = (line.package for line, python in lines if not fit.takes(Needs(line.account, line.package, python)))
        return list(dict.fromkeys(found))

    def withdraw(self, account_id: str, package_id: str) -> list[str]:
        """See the port. The cost depends on the number of the package's messages only."""
        waiting, line = "state = 'waiting' AND (account, package) = (?, ?)", (account_id, package_id)
        with self._db.transaction():
            self._surface(self._clock.now())
            select = f"SELECT body FROM messages WHERE {waiting} AND receives = 0 ORDER BY id"
            bodies = [body for (body,) in self._db.execute(select, line)]
            self._db.execute(f"DELETE FROM messages WHERE {waiting}", line)
        return bodies

    def _lines(self) -> list[tuple[Line, str]]:
        """Return the oldest waiting message of each package, with the Python version that its chunk needs ("": any)."""
        return [(Line(*row), python) for *row, python in self._db.execute(_LINES)]

    def _take(self, row_id: int, now: float, visibility_s: float, attempt_id: str) -> Message:
        select = "SELECT body, visible_at, receives FROM messages WHERE id = ?"
        body, visible_at, receives = self._db.execute(select, (row_id,)).fetchone()
        # A new receipt for each delivery: a worker whose lease ran out must not delete or extend the message that the
        # next worker has.
        receipt = self._ids.fresh()
        self._db.execute(
            "UPDATE messages SET state = 'hidden', visible_at = ?, receives = ?, receipt = ? WHERE id = ?",
            (now + visibility_s, receives + 1, receipt, row_id),
        )
        self._db.execute("INSERT INTO attempts VALUES (?, ?, ?)", (attempt_id, receipt, now + MEMORY_S))
        return Message(body, receipt, receives + 1, max(0, round((now - visible_at) * 1e6)))

    def delete_unused(self, receipts: Sequence[str]) -> None:
        select = f"SELECT {_LINE} FROM messages WHERE receipt = ?"
        for receipt in receipts:
            for row in self._db.execute(select, (receipt,)).fetchall():
                self._turns.give_back(Line(*row))
        self.delete(receipts)

    def delete(self, receipts: Sequence[str]) -> None:
        with self._db.transaction():
            self._db.executemany("DELETE FROM messages WHERE receipt = ?", [(receipt,) for receipt in receipts])

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port. A message that became visible is hidden again, unless another receiver has got it."""
        with self._db.transaction():
            self._hide(receipts, self._clock.now() + visibility_s)

    def waiting(self) -> int:
        """See the port. Counts no further than COUNTED."""
        self._surface(self._clock.now())
        select = "SELECT count(*) FROM (SELECT 1 FROM messages WHERE state = 'waiting' LIMIT ?)"
        count: int = self._db.execute(select, (COUNTED,)).fetchone()[0]
        return count

    def waiting_needs(self) -> list[Needs]:
        """Return the needs of the waiting messages: one entry for each message, unless too many wait.

        If many messages wait, some are left out: no package has more than its equal share of COUNTED entries. Each
        package with waiting messages has at least one entry, so that a long package does not hide the others.
        """
        self._surface(self._clock.now())
        lines = self._lines()
        share = max(1, COUNTED // max(1, len(lines)))
        select = (
            "SELECT count(*) FROM"
            " (SELECT 1 FROM messages WHERE state = 'waiting' AND (account, package) = (?, ?) LIMIT ?)"
        )
        needs: list[Needs] = []
        for line, python in lines:
            count: int = self._db.execute(select, (line.account, line.package, share)).fetchone()[0]
            # The count is 0 if the account's or package's id is damaged in the table: the id is then read as a
            # different text, which the query does not find. Without an entry, no held retrieval would be woken for the
            # chunk.
            needs += [Needs(line.account, line.package, python)] * max(1, count)
        return needs

    def has_others(self, besides: Collection[str], fit: Fit = ANY) -> bool:
        self._surface(self._clock.now())
        return any(
            line.package not in besides and fit.takes(Needs(line.account, line.package, python))
            for line, python in self._lines()
        )

    def express_waits(self) -> bool:
        """See the port. Always False: this queue can choose among messages, so busy workers peek instead."""
        return False

    def dead(self, limit: int) -> list[Message]:
        self._surface(self._clock.now())
        select = "SELECT body, receipt, receives FROM messages WHERE state = 'dead' ORDER BY id LIMIT ?"
        return [Message(body, receipt, receives, 0) for body, receipt, receives in self._db.execute(select, (limit,))]

    def _first(self, group: str, now: float) -> bool:
        """Record a message group.

        Returns False if a message of the group was sent within the last MEMORY_S, or is in the queue.

        Without this check, a chunk that is sent again, after a crash or after hours, would be leased to two workers.
        """
        upsert = (
            "INSERT INTO sent_groups VALUES (?, ?)"
            " ON CONFLICT (name) DO UPDATE SET until = excluded.until WHERE until <= ?"
        )
        first = self._db.execute(upsert, (group, now + MEMORY_S, now)).rowcount > 0
        # A message in a damaged state is never delivered, so it must not keep its chunk from being sent again.
        there = "SELECT 1 FROM messages WHERE group_name = ? AND state IN ('waiting', 'hidden', 'dead')"
        return first and self._db.execute(there, (group,)).fetchone() is None

    def _surface(self, now: float) -> None:
        # An update that finds nothing takes four times as long as this query, because it prepares to write each index.
        due = "state = 'hidden' AND visible_at <= ?"
        if self._db.execute(f"SELECT 1 FROM messages WHERE {due} LIMIT 1", (now,)).fetchone() is None:
            return
        self._db.execute(
            f"UPDATE messages SET state = CASE WHEN receives < ? THEN 'waiting' ELSE 'dead' END WHERE {due}",
            (LARGEST_RECEIVES, now),
        )

    def _hide(self, receipts: Sequence[str], until: float) -> None:
        update = "UPDATE messages SET state = 'hidden', visible_at = ? WHERE receipt = ?"
        self._db.executemany(update, [(until, receipt) for receipt in receipts])

    def _repeat(self, attempt_id: str, now: float) -> list[Message]:
        select = (
            "SELECT body, receipt, receives FROM attempts JOIN messages USING (receipt)"
            " WHERE attempt_id = ? AND until > ? AND state = 'hidden' ORDER BY id"
        )
        return [
            Message(body, receipt, receives, 0)
            for body, receipt, receives in self._db.execute(select, (attempt_id, now)).fetchall()
        ]

    def _sweep(self, now: float) -> None:
        self._swept_at = now
        self._db.execute("DELETE FROM sent_groups WHERE until <= ?", (now,))
        self._db.execute("DELETE FROM attempts WHERE until <= ?", (now,))
