"""The agent's side of a zygote."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Final

from cloudpar_worker.executor.thread_limits import thread_variables
from cloudpar_worker.executor.waiting import OWN_POOL
from cloudpar_worker.sandbox.confinement import Confinement, encode
from cloudpar_worker.zygote.messages import MESSAGE

from .settings import WorkerSettings

ENDS_S: Final = 15
"""How long the agent waits for a zygote to end, in seconds. A zygote that ends first removes the files that tasks left
behind, which may be many.
"""

_HARMLESS: Final = (
    "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "PYTHON*", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "*_NUM_THREADS", "OMP_*", "MKL_*", "KMP_*", "CUDA_*", "NVIDIA_*",
)  # fmt: skip
"""Patterns for the environment variables that executors of a shared worker get. These variables say how programs run
here. Any other variable may contain a secret, such as a key or the password of a proxy.
"""


class ZygoteProcess:
    """A zygote, which starts when the object is made, and runs until `close`.

    Neither the memory nor the environment of a zygote ever contains the worker token.

    Args:
        interpreter: The path of the zygote's Python.
        settings: The worker's settings.
        confinement: How executors are confined. None means that tasks have the rights of the user who started this
            worker.

    Raises:
        OSError: The interpreter cannot be started.
    """

    def __init__(self, interpreter: str, settings: WorkerSettings, confinement: Confinement | None = None) -> None:
        self.socket, theirs = socket.socketpair()
        environment = executor_environment(os.environ, shared=confinement is not None)
        environment |= thread_variables(os.environ, settings.threads_per_task)
        if settings.own_pool is not None:
            environment[OWN_POOL] = " ".join(settings.own_pool)
        if settings.tmp is not None:
            environment["TMPDIR"] = settings.tmp
        flags = ["-P"] if sys.flags.safe_path else []
        command = [interpreter, *flags, "-m", "cloudpar_worker.zygote", str(theirs.fileno())]
        if confinement is not None:
            command.append(encode(confinement))
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment, start_new_session=True
            )
        except OSError:
            self.socket.close()
            raise
        finally:
            theirs.close()

    def send(self, operation: bytes, executor_id: int, descriptors: list[int]) -> None:
        """Send a request to the zygote. Only the request for a new executor needs `descriptors`.

        Raises:
            ConnectionError: The zygote is gone; `receive` reports this too.
        """
        message = MESSAGE.pack(operation, executor_id, 0)
        if descriptors:
            socket.send_fds(self.socket, [message], descriptors)
        else:
            self.socket.sendall(message)

    def receive(self) -> Iterator[tuple[bytes, int, int]]:
        """Yield the messages that have arrived, each as operation, executor id and figure.

        If there is no message, wait for one.

        Raises:
            EOFError: The zygote is gone.
            ConnectionError: The zygote is gone, and had not read all messages that were sent to it.
        """
        messages = self.socket.recv(64 * MESSAGE.size)
        while len(messages) % MESSAGE.size:
            rest = self.socket.recv(MESSAGE.size - len(messages) % MESSAGE.size)
            messages += rest
            if not rest:
                break
        if not messages:
            raise EOFError
        return MESSAGE.iter_unpack(messages)

    def close(self) -> None:
        """Tell the zygote to end with all its executors, and wait at most ENDS_S. The zygote may need longer."""
        self.socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDS_S)


def executor_environment(environment: Mapping[str, str], *, shared: bool) -> dict[str, str]:
    """Return the environment of executors: in a shared worker only harmless variables, otherwise all but CLOUDPAR_*."""
    if not shared:
        return {name: text for name, text in environment.items() if not name.startswith("CLOUDPAR_")}
    seen = {name: text for name, text in environment.items() if any(fnmatchcase(name, each) for each in _HARMLESS)}
    if "PYTHONPATH" in seen:
        seen["PYTHONPATH"] = _without_here(seen["PYTHONPATH"])
    return seen


def _without_here(path: str) -> str:
    """Make a PYTHONPATH without the entries that name the working folder as "" or ".", for tasks of a shared worker.

    The working folder may be a user's home.
    """
    return os.pathsep.join(entry for entry in path.split(os.pathsep) if os.path.normpath(entry) != os.curdir)
