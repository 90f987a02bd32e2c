"""Chooses and removes the folders into which executors unpack modules of clients' projects."""

import os
import secrets
import tempfile

from cloudpar_worker.sandbox.cleanup import remove

folder = ""
"""The folder of this executor; "" means the private folder of its sandbox. Task code of every release of the SDK reads
this variable by its name, so neither the variable nor the module can be renamed.
"""


class ProjectFolders:
    """The folders of a zygote's executors. An executor creates its folder only when it needs the folder."""

    def __init__(self) -> None:
        self._tmp = tempfile.gettempdir()
        self._by_pid: dict[int, str] = {}

    def new(self) -> str:
        """Return a new path for the folder of an executor, without creating the folder."""
        return os.path.join(self._tmp, f"cloudpar-project-{secrets.token_hex(8)}")

    def given(self, path: str, pid: int) -> None:
        """Record that the executor with the process id `pid` got this path for its folder."""
        self._by_pid[pid] = path

    def remove(self, pid: int) -> None:
        """Remove the folder of an executor that has ended.

        A forked process removes the folder, because the folder may be large, and the next executor must not wait. If
        the fork fails, this process removes the folder.
        """
        path = self._by_pid.pop(pid, None)
        if path is None or not os.path.lexists(path):
            return
        try:
            child = os.fork()
        except OSError:
            remove(path)
            return
        if child == 0:
            try:
                remove(path)
            finally:
                os._exit(0)

    def remove_all(self) -> None:
        """Remove all folders. Call it when the zygote has killed its executors and is about to end."""
        for path in self._by_pid.values():
            if os.path.lexists(path):
                remove(path)
