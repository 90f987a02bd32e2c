from cloudpar_master.core.events import Lost
from cloudpar_master.ports import Message

from .backend import Backend
from .chunk_text import ChunkText
from .folding import Folding

PACKAGES = 100
"""How many due packages one call folds at most."""

MESSAGES = 10
"""How many lost chunks one tick reports to their packages at most."""


class Timer:
    """Does what must not wait for a request: folds due packages, and reports chunks that the queue gave up."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._folding = Folding(backend)

    def tick(self) -> int:
        """Report lost chunks to their packages, and fold the packages that are due.

        Returns:
            How many packages and chunks there were. If this is less than PACKAGES, no other package is due.

        Raises:
            ExceptionGroup: Some packages could not be folded, for example because one is too busy now; all others were.
        """
        dead = self._backend.queue.dead(MESSAGES)
        failures: list[Exception] = []
        for message in dead:
            try:
                self.lost(message)
                self._backend.queue.delete([message.receipt])
            except Exception as error:  # noqa: BLE001 - one package must not hold up all others
                failures.append(error)
        try:
            done = self.fold_due()
        except ExceptionGroup as group:
            failures += group.exceptions
        if failures:
            raise ExceptionGroup("some packages could not be folded", failures)
        return done + len(dead)

    def fold_due(self) -> int:
        """Fold the packages that are due. Returns how many there were, PACKAGES at most.

        Raises:
            ExceptionGroup: Some packages could not be folded; all others were.
        """
        due = self._backend.packages.due(self._backend.clock.now(), PACKAGES)
        failures: list[Exception] = []
        for package_id in due:
            try:
                self._folding.advance(package_id, due=True)
            except Exception as error:  # noqa: BLE001 - one package must not hold up those behind it
                error.add_note(f"package {package_id}")
                failures.append(error)
        if failures:
            raise ExceptionGroup("packages that were due could not be folded", failures)
        return len(due)

    def lost(self, message: Message) -> None:
        """Report a chunk that was delivered too often to its package. Afterwards its message may be deleted.

        Raises:
            Unavailable: The package is too busy now. The caller should try again later.
        """
        chunk = ChunkText.parse(message.body)
        lost = chunk.losses + message.receives
        event = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=lost)
        self._folding.advance(chunk.package_id, [(f"l#{chunk.start}#{chunk.generation}", event)])
