class IdleWorkers:
    """Which workers came away empty lately, as far as this process has seen: an estimate, good enough for pacing."""

    MEMORY_S = 30.0

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def note(self, worker_id: str, now: float, *, idle: bool) -> None:
        """A worker asked for tasks."""
        self._since = {name: at for name, at in self._since.items() if now - at < self.MEMORY_S}
        self._since.pop(worker_id, None)
        if idle:
            self._since[worker_id] = now

    def count(self, now: float) -> int:
        """How many idle."""
        return sum(1 for at in self._since.values() if now - at < self.MEMORY_S)

    def others(self, worker_id: str, now: float) -> bool:
        """Whether another worker idles."""
        return any(name != worker_id and now - at < self.MEMORY_S for name, at in self._since.items())
