from cloudpar_master.core.events import Lost

from .deployment import Deployment
from .folding import Folding, parse_chunk

PACKAGES = 100
MESSAGES = 10


class Timer:
    """What nobody's request brings along: time itself, and chunks that the queue gave up."""

    def __init__(self, deployment: Deployment) -> None:
        self._on = deployment
        self._folding = Folding(deployment)

    def tick(self) -> int:
        """Fold what is due and take lost chunks in. Returns how much there was to do; call again while it is full."""
        due = self._on.packages.due(self._on.clock.now(), PACKAGES)
        for package_id in due:
            self._folding.advance(package_id)
        lost = self._on.queue.dead(MESSAGES)
        for message in lost:
            package_id, chunk = parse_chunk(message.body)
            event = Lost(start=chunk.start, end=chunk.end, generation=chunk.generation, receives=message.receives)
            self._on.packages.append(package_id, [(f"l#{chunk.start}#{chunk.generation}", event)])
            self._folding.advance(package_id)
            self._on.queue.delete([message.receipt])
        return len(due) + len(lost)
