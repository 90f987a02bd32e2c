"""Decides which task code a data folder keeps.

Task code is addressed by its hash, so that the same function is uploaded once. The blob of task code must stay while
any package with this code may still hand out tasks. The master also promises a blob to a client when the client has
uploaded it, or when the master has answered that no upload is needed. A promised blob stays until the client has
started its package, or until PROMISED_S are over. Other code is also kept, for the next call of the same function,
while all code together has at most KEPT_BYTES.
"""

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from cloudpar_master.ports import Clock

KEPT_BYTES: Final = 256 * 1024 * 1024
"""How many bytes of code one data folder keeps. Above this size the master removes blobs that no package and no promise
needs. It starts with the blobs that were unused for longest."""
TRIM_S: Final = 60.0
"""While there is too much code, the master looks for blobs to remove once in this many seconds."""
GROWTH: Final = 8
"""The master also looks for blobs to remove when the uploads since its last look exceed KEPT_BYTES / GROWTH. So uploads
cannot fill the disk within TRIM_S."""
PROMISED_S: Final = 3600.0
"""How many seconds a promise holds if its client does not start a package with the blob."""
FAILURES: Final = 10
"""One trim reports at most this many failures, and omits further failures."""


class _Promises(NamedTuple):
    """The number of promises of one blob, and the time when the last of them expires.

    They expire together. A time for each would take much memory, because an account may get many promises of one blob.
    """

    number: int
    until: float


log = logging.getLogger("cloudpar_master")


class CodeBlobs:
    """The files of task code in one folder.

    Args:
        folder: Where the files are. A file's modification time is the time of its last use.
        clock: Tells when promises expire.
        needed: Returns, for each package that may still hand out tasks, the file of its code; None if this code is no
            blob.
        kept_bytes: The largest total size of the code that is kept; see KEPT_BYTES.
    """

    def __init__(
        self, folder: Path, clock: Clock, needed: Callable[[], Iterable[Path | None]], kept_bytes: int = KEPT_BYTES
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._needed = needed
        self._kept_bytes = kept_bytes
        self._bytes = self._added = 0
        self._trimmed_at = 0.0
        self._used: set[Path] | None = None  # blobs used since the start of `trim`; None while no trim is under way
        self._uncounted: set[Path] = set()
        self._promises = OrderedDict[Path, _Promises]()  # those that expire first come first
        for path, used_at, size in sorted(_files(folder, _log), key=lambda file: file[1]):
            self._bytes += size
            # Promises are not stored, but each one updates the file's time. So assume that one promise was made at this
            # time. If a client wrote the file, the file's time is that of the machine's clock. This clock may be ahead
            # of the master's, so take the master's time if it is earlier.
            self._promises[path] = _Promises(1, min(used_at, clock.now()) + PROMISED_S)

    def promise(self, path: Path) -> None:
        """Record that a client is going to start a package with this code."""
        # Each client gets its own promise: of two clients with the same code, the first one's package may end before
        # the second client starts its package.
        number = self._promises[path].number if path in self._promises else 0
        self._promises[path] = _Promises(number + 1, self._clock.now() + PROMISED_S)
        self._promises.move_to_end(path)
        self._forget_expired()
        self.note_use(path)

    def announce(self, path: Path) -> None:
        """Record that a client has got a link to upload this file, and will then start a package with this code."""
        self.promise(path)
        self._uncounted.add(path)

    def keep_promise(self, path: Path) -> None:
        """Record that a package with this code is stored. This fulfils the oldest promise of this code.

        From now on the package needs the code, as long as it may hand out tasks.
        """
        if path in self._uncounted:  # the client wrote the file, so its size is not counted yet
            self._uncounted.remove(path)
            with suppress(FileNotFoundError):
                self.added(path.stat().st_size)
        self.note_use(path)
        promises = self._promises.get(path)
        if promises is not None and promises.number > 1:
            self._promises[path] = promises._replace(number=promises.number - 1)
        elif promises is not None:
            del self._promises[path]

    def added(self, size: int) -> None:
        """Add the size of an uploaded blob to the total."""
        # Do not read the folder here: each upload would take longer, the more blobs there are.
        self._bytes += size
        self._added += size

    def trim(self) -> Iterator[None]:
        """While there is too much code, remove blobs that no package and no promise needs, the longest unused first.

        Yields after each blob or package that it reads, so that requests can be answered in between. Does nothing if no
        trim is due, as TRIM_S and GROWTH say.

        Raises:
            ExceptionGroup: Some files could not be read or removed; others were removed in their place.
        """
        if not self._is_due():
            return
        self._added, self._trimmed_at, self._used = 0, self._clock.now(), set()
        try:
            files, needed = list[tuple[Path, float, int]](), set[Path | None](self._promised())
            failures: list[OSError] = []
            for file in _files(self._folder, failures.append):
                files.append(file)
                yield
            for path in self._needed():
                needed.add(path)
                yield
            # An upload that came meanwhile may be counted twice. The next trim corrects that.
            self._bytes = sum(size for _, _, size in files) + self._added
            for path, _, size in sorted(files, key=lambda file: file[1]):
                if self._bytes <= self._kept_bytes:
                    break
                # A client may have been promised this blob, or have started a package with it, since `needed` was read.
                if path not in needed and path not in self._used:
                    try:
                        path.unlink(missing_ok=True)
                        self._bytes -= size
                    except OSError as error:  # a file that cannot be removed must not keep the trim from the others
                        failures.append(error)
                    yield
            if failures:
                raise ExceptionGroup("some task code could not be read or removed", failures[:FAILURES])
        finally:
            self._used = None

    def _is_due(self) -> bool:
        grown = self._added > self._kept_bytes / GROWTH
        return self._bytes > self._kept_bytes and (grown or self._clock.now() - self._trimmed_at >= TRIM_S)

    def note_use(self, path: Path) -> None:
        """Record that a blob is used, so that a trim that is under way does not remove it."""
        if self._used is not None:
            self._used.add(path)

    def _promised(self) -> list[Path]:
        self._forget_expired()
        return list(self._promises)

    def _forget_expired(self) -> None:
        now = self._clock.now()
        while self._promises and next(iter(self._promises.values())).until <= now:
            self._promises.popitem(last=False)


def _log(error: OSError) -> None:
    log.warning("task code cannot be read, and does not count: %s", error)


def _files(folder: Path, failed: Callable[[OSError], object]) -> Iterator[tuple[Path, float, int]]:
    """Yield each file in a folder and its subfolders, with the time of its last use and its size.

    `failed` is called with the error of each file or folder that cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            found = list(entries)
    except FileNotFoundError:
        return
    except OSError as error:
        failed(error)
        return
    for entry in found:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), failed)
            continue
        try:
            at = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        except OSError as error:
            failed(error)
            continue
        yield Path(entry.path), at.st_mtime, at.st_size
