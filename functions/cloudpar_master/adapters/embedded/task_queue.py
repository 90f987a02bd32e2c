from collections.abc import Sequence

from cloudpar_master.ports import Clock, Ids, Message, Sending

from .database import Database
from .signals import Signals

MEMORY_S = 300.0
"""How long a group name deduplicates and an attempt can be repeated."""

LARGEST_RECEIVES = 4
"""A message that was handed out so often and surfaces again is dead."""


class SqliteTaskQueue:
    """The queue as a table. A group has one message, so first in, first out among what is visible is enough."""

    def __init__(self, database: Database, clock: Clock, ids: Ids, signals: Signals) -> None:
        self._db = database
        self._clock = clock
        self._ids = ids
        self._signals = signals
        self._swept_at = 0.0

    def send(self, messages: Sequence[Sending]) -> list[bool]:
        """See the port."""
        now = self._clock.now()
        sent = 0
        with self._db.transaction():
            if now - self._swept_at > MEMORY_S / 5:
                self._sweep(now)
            for message in messages:
                row = (message.group, now + MEMORY_S)
                if self._db.execute("INSERT OR IGNORE INTO sent_groups VALUES (?, ?)", row).rowcount:
                    self._db.execute("INSERT INTO messages (body, visible_at) VALUES (?, ?)", (message.body, now))
                    sent += 1
        if sent:
            self._signals.chunks_sent(sent)
        return [True] * len(messages)

    def receive(self, limit: int, visibility_s: float, attempt_id: str) -> list[Message]:
        """See the port."""
        now = self._clock.now()
        with self._db.transaction():
            again = self._repeat(attempt_id, now)
            if again:
                return again
            select = (
                "SELECT id, body, visible_at, receives FROM messages"
                " WHERE visible_at <= ? AND receives < ? ORDER BY id LIMIT ?"
            )
            taken = self._db.execute(select, (now, LARGEST_RECEIVES, limit)).fetchall()
            messages: list[Message] = []
            for row_id, body, visible_at, receives in taken:
                receipt = self._ids.fresh()
                self._db.execute(
                    "UPDATE messages SET visible_at = ?, receives = ?, receipt = ? WHERE id = ?",
                    (now + visibility_s, receives + 1, receipt, row_id),
                )
                self._db.execute("INSERT INTO attempts VALUES (?, ?, ?)", (attempt_id, receipt, now + MEMORY_S))
                messages.append(Message(body, receipt, receives + 1, max(0, round((now - visible_at) * 1e6))))
            return messages

    def delete(self, receipts: Sequence[str]) -> None:
        """See the port."""
        with self._db.transaction():
            self._db.executemany("DELETE FROM messages WHERE receipt = ?", [(receipt,) for receipt in receipts])

    def extend(self, receipts: Sequence[str], visibility_s: float) -> None:
        """See the port."""
        until = self._clock.now() + visibility_s
        with self._db.transaction():
            self._db.executemany(
                "UPDATE messages SET visible_at = ? WHERE receipt = ?", [(until, receipt) for receipt in receipts]
            )

    def waiting(self) -> int:
        """See the port."""
        select = "SELECT count(*) FROM messages WHERE visible_at <= ? AND receives < ?"
        count: int = self._db.execute(select, (self._clock.now(), LARGEST_RECEIVES)).fetchone()[0]
        return count

    def dead(self, limit: int) -> list[Message]:
        """See the port."""
        select = (
            "SELECT body, receipt, receives FROM messages WHERE visible_at <= ? AND receives >= ? ORDER BY id LIMIT ?"
        )
        rows = self._db.execute(select, (self._clock.now(), LARGEST_RECEIVES, limit))
        return [Message(body, receipt, receives, 0) for body, receipt, receives in rows]

    def next_visible_at(self) -> float | None:
        """When the next message that is in flight surfaces again; a held retrieval need not look earlier."""
        select = "SELECT min(visible_at) FROM messages WHERE receives < ?"
        at: float | None = self._db.execute(select, (LARGEST_RECEIVES,)).fetchone()[0]
        return at

    def _repeat(self, attempt_id: str, now: float) -> list[Message]:
        select = (
            "SELECT body, messages.receipt, receives FROM attempts JOIN messages USING (receipt)"
            " WHERE attempt_id = ? AND visible_at > ? ORDER BY id"
        )
        rows = self._db.execute(select, (attempt_id, now)).fetchall()
        return [Message(body, receipt, receives, 0) for body, receipt, receives in rows]

    def _sweep(self, now: float) -> None:
        self._swept_at = now
        self._db.execute("DELETE FROM sent_groups WHERE until < ?", (now,))
        self._db.execute("DELETE FROM attempts WHERE until < ?", (now,))
