"""A pool's own master and agent. They start and stop with the pool, and have temporary data."""

import logging
import os
from collections.abc import Callable
from contextlib import suppress

from cloudpar._serialization.installed import project_path
from cloudpar.errors import LocalClusterFailed
from cloudpar_protocol.link_urls import OWN_MASTER
from cloudpar_protocol.tokens import new_token

from .child import Event
from .process_log import ProcessLog
from .programs import agent, listen, master
from .restart_policy import RestartPolicy, fate
from .temporary_folder import TemporaryFolder, sweep

log = logging.getLogger("cloudpar")


def _python_path() -> str:
    """Return a PYTHONPATH for other processes, so that they find the same modules of the user as this process."""
    return os.pathsep.join([*project_path(), *filter(None, [os.environ.get("PYTHONPATH")])])


class LocalCluster:
    """A master process and an agent process with its executors, on this machine only.

    Both processes end with `close`, or when this process ends, even by a SIGKILL.

    Args:
        workers: How many executors the agent has.
        failed: Is called in another thread when the master or the agent has ended and is not started again.
        memory_mb: The memory limit of an executor, in MB. None means 90 % of the memory of this machine, or of the
            container in which the agent runs, divided by `workers`.

    Raises:
        OSError: The system cannot start the processes, or cannot provide a folder or a socket.
    """

    def __init__(
        self, workers: int, failed: Callable[[LocalClusterFailed], None], *, memory_mb: int | None = None
    ) -> None:
        self.workers = workers
        self.token, worker_token, admin_token = new_token(), new_token(), new_token()
        self._failed = failed
        self._closing = False
        self._temporary = TemporaryFolder()
        self.folder = self._temporary.path
        self._logs = {name: ProcessLog(self.folder, name) for name in ("master", "worker")}
        data = self.folder / "data"
        data.mkdir(mode=0o700)  # before the master starts: the pool may already write a payload while the master starts
        self.data = str(data)
        self._listening = listen()
        self.endpoint = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        tokens = {"user_token": self.token, "worker_token": worker_token, "admin_token": admin_token}
        settings = {
            "endpoint": self.endpoint, "token": worker_token, "executors": workers, "memory_mb": memory_mb,
            "pool_token": self.token, "payload_folder": self.data,
        }  # fmt: skip
        self._master = master(
            data, self._listening, tokens, self._report, RestartPolicy(), environment={**os.environ, OWN_MASTER: "1"},
            log_path=self._logs["master"].path,
        )  # fmt: skip
        self._agent = agent(
            settings, self._report, RestartPolicy(runs_tasks=True),
            environment={**os.environ, "PYTHONPATH": _python_path()}, log_path=self._logs["worker"].path,
        )  # fmt: skip
        try:
            self._master.start()
            self._agent.start()
        except OSError:
            self.close()
            raise

    @property
    def pids(self) -> tuple[int | None, int | None]:
        """The current process ids of the master and the agent."""
        return self._master.pid, self._agent.pid

    def _report(self, event: Event) -> None:
        if event.what == "ready" or self._closing:
            return
        if event.name == "worker":
            self._remove_drafts()
        if event.what == "restarting":
            log.warning("cloudpar: the pool's %s ended (%s); starting it again", event.name, fate(event.code))
            return
        its_log = self._logs[event.name]
        text = f"the {event.name} that this pool started keeps dying ({fate(event.code)}{its_log.full_disk()})"
        self._failed(LocalClusterFailed(f"{text}. Its last lines:\n{its_log.tail()}"))

    def _remove_drafts(self) -> None:
        """Remove the unfinished files of an agent that has ended, because no other process knows of these files."""
        from cloudpar_protocol.transport.payload_folder import PayloadFolder

        if self._agent.pid is not None:
            with suppress(OSError):
                PayloadFolder(self.data).remove_drafts(self._agent.pid)

    def close(self) -> None:
        """Stop both processes, remove their data, and also remove folders that killed processes of this user left."""
        self._closing = True
        self._agent.stop()
        self._master.stop()
        self._agent.join()
        self._master.join()
        self._listening.close()
        self._temporary.close()
        sweep()

    def abandon(self) -> None:
        """In a fork of this process: close the fork's copies of the pipes, the lock and the socket.

        The parent's copies stay open.
        """
        self._agent.abandon()
        self._master.abandon()
        self._temporary.abandon()
        self._listening.close()
