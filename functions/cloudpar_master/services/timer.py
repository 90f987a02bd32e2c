from cloudpar_master.core.events import Lost
from cloudpar_master.ports import Message

from .backend import Backend
from .chunk_text import ChunkText
from .folding import Folding

PACKAGES = 100
MESSAGES = 10


class Timer:
    """What nobody's request brings along: time itself, and chunks that the queue gave up."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._folding = Folding(backend)

    def tick(self) -> int:
        """Fold what is due and take lost chunks in. Returns how much there was to do; call again while it is full."""
        dead = self._backend.queue.dead(MESSAGES)
        for message in dead:
            self.lost(message)
            self._backend.queue.delete([message.receipt])
        return self.fold_due() + len(dead)

    def fold_due(self) -> int:
        """Fold the packages whose time has come. Returns how many there were, PACKAGES at most.

        Raises:
            ExceptionGroup: Some could not be folded; all others were.
        """
        due = self._backend.packages.due(self._backend.clock.now(), PACKAGES)
        troubles: list[Exception] = []
        for package_id in due:
            try:
                self._folding.advance(package_id, due=True)
            except Exception as trouble:  # noqa: BLE001 - one package must not hold up those behind it
                trouble.add_note(f"package {package_id}")
                troubles.append(trouble)
        if troubles:
            raise ExceptionGroup("packages that were due could not be folded", troubles)
        return len(due)

    def lost(self, message: Message) -> None:
        """Take in a chunk that was delivered too often. Afterwards its message may go."""
        chunk = ChunkText.parse(message.body)
        lost = chunk.losses + message.receives
        event = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=lost)
        self._folding.advance(chunk.package_id, [(f"l#{chunk.start}#{chunk.generation}", event)])
