import logging
from collections.abc import Callable
from typing import NamedTuple

from cloudpar_master.core.events import Lost
from cloudpar_master.core.head import Head
from cloudpar_master.ports import Message

from .backend import Backend
from .chunk_text import ChunkText
from .folding import Folding
from .steps import Steps

PACKAGES = 100
"""How many due packages one call folds at most."""

MESSAGES = 10
"""How many lost chunks one call reports to their packages at most."""

DEFER_S = 30.0
"""For how many seconds a package that cannot be folded, or a lost chunk that cannot be reported, is put off. Meanwhile
the timer handles other packages and chunks, even if a hundred such packages are the most overdue ones."""

log = logging.getLogger("cloudpar_master")


class Due(NamedTuple):
    """How many packages were due, and the errors of those that could not be folded.

    If fewer than PACKAGES were due, no other package is due.
    """

    packages: int
    failures: list[Exception]


class Reported(NamedTuple):
    """How many lost chunks there were, the packages that know about them now, and the errors for the other chunks.

    If there were fewer than MESSAGES lost chunks, there are probably no others.
    """

    messages: int
    package_ids: list[str]
    failures: list[Exception]


class Timer:
    """Does what must not wait for a request: folds due packages, and reports chunks that the queue gave up."""

    def __init__(self, backend: Backend, folding: Folding | None = None) -> None:
        self._backend = backend
        self._folding = folding or Folding(backend)

    def tick(self) -> Steps[int]:
        """Report lost chunks to their packages, and fold the packages that are due, in steps.

        Returns:
            The number of packages and chunks. If it is less than PACKAGES, no other package is due.

        Raises:
            ExceptionGroup: Some packages could not be folded, for example because they are too busy now, or some lost
                chunks could not be read or reported. All other packages and chunks were handled.
        """
        reported = self.report_lost()
        yield
        due = yield from self.fold_due()
        failures = reported.failures + due.failures
        if failures:
            raise ExceptionGroup("some packages could not be folded", failures)
        return due.packages + reported.messages

    def report_lost(self) -> Reported:
        """Report to packages which of their chunks the queue gave up. One call reports at most MESSAGES chunks.

        A chunk that cannot be reported is put off for DEFER_S.
        """
        package_ids: list[str] = []
        failures: list[Exception] = []
        try:
            dead = self._backend.queue.dead(MESSAGES)
        except Exception as error:  # noqa: BLE001 - due packages must not wait for a queue that cannot be read
            return Reported(0, [], [error])
        for message in dead:
            try:
                package_id = self.lost(message)
                package_ids += [package_id] if package_id else []
                self._backend.queue.delete([message.receipt])
            except Exception as error:  # noqa: BLE001 - one package must not hold up all others
                failures += [error, *self._put_off(self._backend.queue.extend, [message.receipt], DEFER_S)]
        return Reported(len(dead), package_ids, failures)

    def fold_due(self) -> Steps[Due]:
        """Fold packages that are due, at most PACKAGES of them, in steps.

        A package that cannot be folded is put off for DEFER_S.
        """
        now = self._backend.clock.now()
        due = self._backend.packages.due(now, PACKAGES)
        failures: list[Exception] = []
        for package_id in due:
            try:
                head = yield from self._fold(package_id)
                folded = head is None or not head.foreign or self._removed(head, now)
            except Exception as error:  # noqa: BLE001 - one package must not hold up those behind it
                error.add_note(f"package {package_id}")
                failures.append(error)
                folded = False
            if not folded:
                failures += self._put_off(self._backend.packages.defer, package_id, now, now + DEFER_S)
            yield
        return Due(len(due), failures)

    def _fold(self, package_id: str) -> Steps[Head | None]:
        """Fold a package. If its results are to be deleted, repeat the fold until all of them are deleted."""
        while True:
            head = self._folding.advance(package_id, due=True)
            if head is None or head.foreign or not (head.life.unneeded and head.life.deleted_at is None):
                return head
            yield

    def _removed(self, head: Head, now: float) -> bool:
        """Remove a package with a damaged head, after the longest time for which a package is kept.

        Returns whether it is removed.
        """
        policy = self._backend.policy
        over = now >= head.started_at + policy.lifetime_s + policy.retention_s + policy.tombstone_s
        if head.damaged and over:
            self._folding.remove(head)
        return head.damaged and over

    @staticmethod
    def _put_off(call: Callable[..., None], *arguments: object) -> list[Exception]:
        """Make a call that moves a failed package or message behind the others. If it fails, too, return its error."""
        try:
            call(*arguments)
        except Exception as error:  # noqa: BLE001 - the next tick finds the same ones first, and tries again
            return [error]
        return []

    def lost(self, message: Message) -> str | None:
        """Report to a package that its chunk was delivered too often. Afterwards the chunk's message may be deleted.

        Returns the package's id; None if the message is not the text of a chunk, which is only logged.

        Raises:
            Unavailable: The package is too busy now. The caller should try again later.
        """
        try:
            chunk = ChunkText.parse(message.body)
        except ValueError as error:
            log.error("a dead letter is deleted: %s", error)  # noqa: TRY400 - the text says it all
            return None
        lost = chunk.losses + message.receives
        event = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=lost)
        self._folding.advance(chunk.package_id, [(f"l#{chunk.start}#{chunk.generation}", event)])
        return chunk.package_id
