"""A master or an agent as a child process.

If the process ends although no method of `Child` has asked it to end, it is restarted as its policy allows.
"""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from .restart_policy import RestartPolicy

STOP_S = 5.0
"""How long `join` waits for a process that was asked to end, in seconds. After this time `join` kills the process."""

READY = b'"event":"ready"'
"""A line of standard output that contains this text says that the process is ready to work."""

LAST_LINES_S = 1.0
"""How long to wait for the last lines of standard output after the process has ended, in seconds."""


class Event(NamedTuple):
    """What happened to a child.

    Attributes:
        what: "ready" says that the process is ready to work. "restarting" says that the process has ended, and that the
            next process starts when the function that receives this event returns. "ended" says that the process has
            ended and no other process follows, perhaps because none could be started.
        name: The child's name.
        code: The exit status of the process that has ended, negative for a signal; 0 with "ready".
    """

    what: Literal["ready", "restarting", "ended"]
    name: str
    code: int = 0


Report = Callable[[Event], None]
"""A function that receives the events of a child, in a thread of the `Child`. It must not call `drain` or `stop` of
this child, because these methods may wait for a lock that this thread holds.
"""


class Child:
    """Runs `python -m module` and writes one line of JSON to its standard input, which then stays open.

    The child's process ends when its standard input closes. So it also ends when its parent dies, even by a SIGKILL.

    Args:
        name: "master" or "worker".
        command: The module and its arguments.
        configuration: The content of the line of JSON.
        report: Receives the events.
        policy: Decides about restarts.
        pass_fds: File descriptors that the process inherits.
        environment: The environment variables of the process; None means those of this process.
        log_path: The file that receives the standard error of the process; None means the standard error of this
            process.
    """

    def __init__(
        self, name: str, command: Sequence[str], configuration: Mapping[str, Any], report: Report, *,
        policy: RestartPolicy, pass_fds: Sequence[int] = (), environment: Mapping[str, str] | None = None,
        log_path: Path | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.exit_code: int | None = None
        """The exit status of the last process, negative for a signal; None until the last process has ended."""
        self._command = command
        self._configuration = json.dumps(configuration).encode() + b"\n"
        self._report = report
        self._policy = policy
        self._pass_fds = pass_fds
        self._environment = environment
        self._log_path = log_path
        self._lock = threading.Lock()
        self._stopping = self._is_ready = False
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher = threading.Thread(target=self._watch, name=f"cloudpar-{name}", daemon=True)

    @property
    def pid(self) -> int | None:
        """The id of the current process; None before the start.

        After a process has ended, this is still its id until the next process has started.
        """
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process, and watch for its end.

        Raises:
            OSError: The system cannot start the process, or cannot write its log.
        """
        self._spawn()
        self._watcher.start()

    def _spawn(self) -> None:
        self._is_ready = False
        # -P is needed because files in the user's working folder must not replace modules that the child imports. The
        # child gets a session of its own because Ctrl-C at the terminal must not reach it: this process stops its
        # children itself.
        with self._log_path.open("ab") if self._log_path else nullcontext() as log_file:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", *self._command],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log_file,
                pass_fds=self._pass_fds, env=self._environment, start_new_session=True, bufsize=0,
            )  # fmt: skip
        if process.stdin is None or process.stdout is None:
            raise AssertionError(self.name)
        self._listener = threading.Thread(
            target=self._listen, args=(process.stdout,), name=f"cloudpar-{self.name}-output", daemon=True
        )
        self._listener.start()
        self._process = process
        with suppress(BrokenPipeError):  # the process died at once; the watcher reports this
            process.stdin.write(self._configuration)

    def _listen(self, output: IO[bytes]) -> None:
        with output:
            for line in output:  # all output is read, because a full pipe would block the child
                if READY in line:
                    self._is_ready = True
                    self._report(Event("ready", self.name))

    def _watch(self) -> None:
        while self._process is not None:
            # Wait for the process, not for the end of its output. After the process was killed, processes that it
            # started may hang and keep the output open.
            code = self._process.wait()
            with self._lock:
                self._close_stdin()
                if not self._stopping:
                    self._listener.join(LAST_LINES_S)  # the last line may still say that the process was ready
                    if self._policy.allow(code, was_ready=self._is_ready):
                        self._report(Event("restarting", self.name, code))
                        with suppress(OSError, RuntimeError):  # the system starts no process, or Python shuts down
                            self._spawn()
                            continue
                self.exit_code = code
            self._report(Event("ended", self.name, code))
            return

    def drain(self) -> None:
        """Ask an agent to finish its running tasks, publish their results, and end. The agent is not restarted."""
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._process.terminate()

    def stop(self) -> None:
        """Ask the process to end at once. The process is not restarted.

        The standard input of the process is also closed, which ends even an agent that already drains.
        """
        with self._lock:
            self._stopping = True
            if self._process is not None:
                self._close_stdin()
                self._process.terminate()

    def join(self) -> None:
        """Wait for a process that was asked to end; kill it after STOP_S.

        This method returns at once before the start, and in the thread that reports the end of the process.
        """
        if self._process is None or self._watcher is threading.current_thread():
            return
        self._watcher.join(STOP_S)
        if self._watcher.is_alive():
            self._process.kill()  # zygotes and executors end with their agent
            self._watcher.join()

    def abandon(self) -> None:
        """Close this fork's copy of the child's standard input, so that only the parent keeps it open."""
        with suppress(OSError):
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
