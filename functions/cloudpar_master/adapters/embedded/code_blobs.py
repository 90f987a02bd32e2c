"""Decides which task code a data folder keeps.

Task code is addressed by its hash, so that the same function is uploaded once. A blob must stay as long as a
package that may still hand out tasks refers to it. It must also stay for each client that has uploaded it, or that the
master has told not to upload it again: it is promised to this client until the client has started its package. A
promise expires after PROMISED_S. Other code is kept as well, for the next call of the same function, while all code
together has at most KEPT_BYTES.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from cloudpar_master.ports import Clock

KEPT_BYTES: Final = 256 * 1024 * 1024
"""How many bytes of code one data folder keeps. Above this size the master removes blobs that no package and no promise
needs; it starts with those that were unused for longest."""
PROMISED_S: Final = 3600.0
"""How many seconds a promise holds if its client does not start a package with the blob."""
PROMISES: Final = 1_000
"""How many promises are remembered for one blob. Beyond that the oldest one is forgotten."""


class CodeBlobs:
    """The files of task code in one folder.

    Args:
        folder: Where they are. A file's modification time is the time of its last use.
        clock: Tells when promises expire.
        needed: Returns the blobs of packages that may still hand out tasks.
        kept_bytes: How many bytes of code are kept, as KEPT_BYTES says.
    """

    def __init__(
        self, folder: Path, clock: Clock, needed: Callable[[], Collection[Path]], kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._needed = needed
        self._kept_bytes = kept_bytes
        self._bytes = 0
        self._uncounted: set[Path] = set()
        self._promises: defaultdict[Path, deque[float]] = defaultdict(lambda: deque(maxlen=PROMISES))
        for path, used_at, size in self._files():
            self._bytes += size
            # Promises are not stored, but each one updates the file's time. So assume one that was made at this time.
            self._promises[path].append(used_at + PROMISED_S)

    def promise(self, path: Path) -> None:
        """Note that a client is going to start a package with this code."""
        # Each client gets its own promise: of two clients with the same code, the first one's package may end before
        # the second one starts its own.
        self._promises[path].append(self._clock.now() + PROMISED_S)

    def announce(self, path: Path) -> None:
        """Note that a client has got a link to this file, to write it and then to start a package with this code."""
        self.promise(path)
        self._uncounted.add(path)

    def keep_promise(self, path: Path) -> None:
        """Note that a package with this code is stored, which keeps the oldest promise of this code.

        From now on the code is needed as long as the package runs.
        """
        if path in self._uncounted:  # the client wrote the file, so its size is not counted yet
            self._uncounted.remove(path)
            with suppress(FileNotFoundError):
                self.added(path.stat().st_size)
        promises = self._promises[path]
        if promises:
            promises.popleft()
        if not promises:
            del self._promises[path]

    def added(self, size: int) -> None:
        """Add the size of an uploaded blob to the total, and remove code that is now too much."""
        self._bytes += size
        self.trim()

    def trim(self) -> None:
        """While there is too much code, remove blobs that no package and no promise needs, the longest unused first."""
        if self._bytes <= self._kept_bytes:
            return
        files = sorted(self._files(), key=lambda file: file[1])
        self._bytes = sum(size for _, _, size in files)
        needed = {*self._needed(), *self._promised()}
        for path, _, size in files:
            if self._bytes <= self._kept_bytes:
                break
            if path not in needed:
                path.unlink(missing_ok=True)
                self._bytes -= size

    def _promised(self) -> list[Path]:
        now = self._clock.now()
        for path, promises in list(self._promises.items()):
            while promises and promises[0] <= now:
                promises.popleft()
            if not promises:
                del self._promises[path]
        return list(self._promises)

    def _files(self) -> list[tuple[Path, float, int]]:
        """Return each file with the time of its last use and its size."""
        files = []
        for path in self._folder.rglob("*"):
            with suppress(FileNotFoundError):
                found = path.stat()
                if path.is_file():
                    files.append((path, found.st_mtime, found.st_size))
        return files
