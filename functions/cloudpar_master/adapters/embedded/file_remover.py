import itertools
import queue
import shutil
import threading
from contextlib import suppress
from pathlib import Path


class FileRemover:
    """Removes files and folders in a thread of its own.

    In the thread that answers requests, the removal of a large file or folder would delay all requests. That thread
    only moves the file or folder aside, so that no reader finds it any more.

    Args:
        folder: The folder into which files are moved before their removal. It must be on the same file system as the
            files. The constructor removes all that an earlier process has left in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._names = itertools.count()
        self._moved: queue.SimpleQueue[Path] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        shutil.rmtree(folder, ignore_errors=True)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it. A path that does not exist counts as removed."""
        if not path.exists():
            return
        self._folder.mkdir(mode=0o700, exist_ok=True)
        aside = self._folder / f"{next(self._names)}"
        with suppress(FileNotFoundError):
            path.rename(aside)
            self._moved.put(aside)
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="waste", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            self.remove_next()

    def remove_next(self) -> None:
        """Remove the file or folder that was moved aside first. If nothing was moved aside, wait."""
        path = self._moved.get()
        # No error may end the thread, not even one of `is_dir`. The next start of the master removes what is left.
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
