"""Where executors unpack the modules of clients' projects, and that nothing of it stays."""

import os
import secrets
import tempfile

from cloudpar_worker.sandbox.cleanup import remove

folder = ""
"""Where task code of this executor unpacks, "": in the private folder of its sandbox. The SDK has this name."""


class ProjectFolders:
    """The folders of a zygote's executors. Each makes its own, if it needs one."""

    def __init__(self) -> None:
        self._tmp = tempfile.gettempdir()
        self._by_pid: dict[int, str] = {}

    def new(self) -> str:
        """The path for one more executor."""
        return os.path.join(self._tmp, f"cloudpar-project-{secrets.token_hex(8)}")  # noqa: PTH118 - pathlib would be imported for this alone

    def given(self, path: str, pid: int) -> None:
        """An executor has it."""
        self._by_pid[pid] = path

    def remove(self, pid: int) -> None:
        """The executor has ended. Another process removes its files: they may be many, and forks must not wait."""
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
        """The zygote ends, and has killed its executors."""
        for path in self._by_pid.values():
            if os.path.lexists(path):
                remove(path)
