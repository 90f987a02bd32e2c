"""How much task code a data folder keeps.

Task code is addressed by its hash, so that the same function is uploaded once. A blob must stay as long as a
package that may still hand out tasks refers to it. It must also stay until each client that has uploaded it, or that
the master has told not to upload it again, has started its package. All other code is kept up to a size, for the next
call of the same function.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Final

from cloudpar_master.ports import Clock

KEPT_BYTES: Final = 256 * 1024 * 1024
"""How many bytes of code one data folder keeps. Above this size the master removes blobs that no package needs; those
that were unused for longest go first."""
PROMISED_S: Final = 3600.0
"""How long a blob is kept for a client that has asked for it, but has not started a package."""
PROMISES: Final = 1_000
"""How many clients one blob remembers that have asked for it and have not started a package. Beyond that the oldest one
is forgotten."""


class CodeBlobs:
    """The files of task code in one folder.

    Args:
        folder: Where they are. A file's modification time is the time of its last use.
        clock: Tells when promises expire.
        needed: Finds the blobs of packages that may still hand out tasks.
        kept_bytes: As KEPT_BYTES.
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
            # Promises are not stored. An earlier master that made one has updated the file's time.
            self._promises[path].append(used_at + PROMISED_S)

    def promise(self, path: Path) -> None:
        """Note that a client is going to start a package with this code."""
        # One promise for each client: if two clients have asked, the package of the first one may end before the second
        # one starts its own.
        self._promises[path].append(self._clock.now() + PROMISED_S)

    def announce(self, path: Path) -> None:
        """Note that a client is going to write the file itself, and then to start a package with it."""
        self.promise(path)
        self._uncounted.add(path)

    def keep_promise(self, path: Path) -> None:
        """Note that a package with this code is stored. From now on the package says how long the code is needed."""
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
        """Add the size of an uploaded blob to the total."""
        self._bytes += size
        self.trim()

    def trim(self) -> None:
        """While there is too much code, remove the blobs that no package needs and that were unused for longest."""
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
