"""A master and an agent of one's own: started with the pool, on temporary data, and ended with it."""

import os
import secrets
import socket
from collections.abc import Callable

from cloudpar._serialization.installed import project_path
from cloudpar.errors import LocalClusterFailed

from .child import Child
from .temporary_folder import TemporaryFolder, sweep

BACKLOG = 512


def default_workers() -> int:
    """One executor for each core that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _python_path() -> str:
    """PYTHONPATH for a process that finds the modules of the user's own that this one finds."""
    return os.pathsep.join([*project_path(), *filter(None, [os.environ.get("PYTHONPATH")])])


class LocalCluster:
    """A master process and an agent process with its executors, on this machine only.

    Both end when the standard input that we hold open for them ends: with `close`, or with this process, however
    it dies.
    """

    def __init__(
        self, workers: int, failed: Callable[[LocalClusterFailed], None], *, memory_mb: int | None = None
    ) -> None:
        self.workers = workers
        self.token = secrets.token_urlsafe(32)
        worker_token, admin_token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._temporary = TemporaryFolder()
        self.folder = self._temporary.path
        self.data = str(self.folder / "data")
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.endpoint = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        tokens = {"user_token": self.token, "worker_token": worker_token, "admin_token": admin_token}
        agent = {
            "endpoint": self.endpoint,
            "token": worker_token,
            "executors": workers,
            "memory_mb": memory_mb,
            "pool_token": self.token,
            "payload_folder": self.data,
        }
        listen_fd = self._socket.fileno()
        self._children = (
            Child(
                "master",
                ["cloudpar_master", "--data", self.data, "--listen-fd", str(listen_fd), "--stdin"],
                tokens, self.folder, pass_fds=(listen_fd,), gave_up=failed,
            ),
            Child(
                "worker", ["cloudpar_worker", "--stdin"], agent, self.folder, gave_up=failed,
                environment={**os.environ, "PYTHONPATH": _python_path()}, runs_tasks=True,
                ended=self._remove_drafts,
            ),
        )  # fmt: skip
        for child in self._children:
            child.start()

    @property
    def pids(self) -> tuple[int | None, int | None]:
        """Process ids of the master and the agent, as they are now."""
        master, agent = self._children
        return master.pid, agent.pid

    def _remove_drafts(self, pid: int) -> None:
        """Remove what an agent that was killed has half written: nothing else knows of it before the pool ends."""
        from cloudpar_protocol.payload_folder import PayloadFolder

        PayloadFolder(self.data).remove_drafts(pid)

    def close(self) -> None:
        """End both processes and remove their data."""
        for child in reversed(self._children):
            child.stop()
        for child in reversed(self._children):
            child.join()
        self._socket.close()
        self._temporary.close()
        sweep()

    def abandon(self) -> None:
        """In a forked child of this process: let go of what only the parent may hold."""
        for child in self._children:
            child.abandon()
        self._temporary.abandon()
        self._socket.close()
