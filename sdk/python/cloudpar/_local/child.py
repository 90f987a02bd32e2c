"""A process that the pool starts and keeps alive: the master or the agent."""

import contextlib
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cloudpar.errors import LocalClusterFailed

from .restart_policy import RestartPolicy, fate

STOP_S = 5.0
"""A process that is asked to end and has not after this long is killed."""

READY = b'"event":"ready"'
"""In the line of its log by which the agent says that it can work."""

LOG_TAIL_BYTES = 2000

LEAST_ROOM_BYTES = 1 << 20
"""With less room than this, a process that keeps dying may not have been able to write its files."""

log = logging.getLogger("cloudpar")


class Child:
    """Runs `python -m module`, gives it one line of JSON, and starts it again when it crashes."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        greeting: Mapping[str, Any],
        folder: Path,
        *,
        gave_up: Callable[[LocalClusterFailed], None],
        pass_fds: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        runs_tasks: bool = False,
        ended: Callable[[int], None] = lambda _: None,
    ) -> None:
        self.name = name
        self._command = command
        self._greeting = json.dumps(greeting).encode() + b"\n"
        self._log_path = folder / f"{name}.log"
        self._gave_up = gave_up
        self._ended = ended
        """Called with the id of a process that has crashed, before the next one starts."""
        self._pass_fds = pass_fds
        self._environment = environment
        self._lock = threading.Lock()
        self._stopping = False
        self._restart_policy = RestartPolicy(runs_tasks=runs_tasks)
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._watcher = threading.Thread(target=self._watch, name=f"cloudpar-{name}", daemon=True)

    @property
    def pid(self) -> int | None:
        """Of the process as it is now."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start it, and watch it from now on."""
        self._spawn()
        self._watcher.start()

    def _spawn(self) -> None:
        # -P: files of the user's working folder must not take the place of modules that this process needs.
        # Its own session: Ctrl-C at the terminal is for the client, which ends its children in good order.
        with self._log_path.open("ab") as log_file:
            self._log_start = log_file.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", *self._command],
                stdin=subprocess.PIPE, stdout=log_file, stderr=log_file,
                pass_fds=self._pass_fds, env=self._environment, start_new_session=True, bufsize=0,
            )  # fmt: skip
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it died at once; the watcher says so
                self._process.stdin.write(self._greeting)

    def _watch(self) -> None:
        while self._process is not None:
            process = self._process
            code = process.wait()
            with self._lock:
                if process.stdin is not None:
                    process.stdin.close()
                if self._stopping:
                    return
                with contextlib.suppress(OSError):
                    self._ended(process.pid)
                if self._restart_policy.allow(code, was_ready=self._was_ready()):
                    log.warning("cloudpar: the pool's %s ended (%s); starting it again", self.name, fate(code))
                    with contextlib.suppress(OSError, RuntimeError):  # no process can be started, or no more
                        self._spawn()
                        continue
            text = f"the {self.name} that this pool started keeps dying ({fate(code)}{self._no_room()})"
            self._gave_up(LocalClusterFailed(f"{text}. Its last lines:\n{self._tail()}"))
            return

    def _no_room(self) -> str:
        """What is missing on the disk of its log: then the log cannot say it."""
        folder = self._log_path.parent
        if shutil.disk_usage(folder).free >= LEAST_ROOM_BYTES:
            return ""
        return f"; the disk of {folder} is full: free space there, or set TMPDIR to a folder with more"

    def _was_ready(self) -> bool:
        with contextlib.suppress(OSError), self._log_path.open("rb") as file:
            file.seek(self._log_start)
            return any(READY in line for line in file)
        return False

    def _tail(self) -> str:
        with contextlib.suppress(OSError), self._log_path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
            return file.read().decode(errors="replace").strip() or "(it wrote nothing)"
        return "(it left no log)"

    def stop(self) -> None:
        """Ask it to end, at once: the end of its standard input says that nobody wants anything of it any more."""
        with self._lock:
            self._stopping = True
            process = self._process
            if process is None:
                return
            if process.stdin is not None:
                process.stdin.close()
            if process.poll() is None:
                process.terminate()

    def join(self) -> None:
        """Wait for its end, for a while, and then enforce it."""
        process = self._process
        if process is None:
            return
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the agent's executors are in its process group
        if self._watcher is not threading.current_thread():
            self._watcher.join()

    def abandon(self) -> None:
        """In a forked child: hold the process's standard input open no longer."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
