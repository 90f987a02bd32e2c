"""The agent's executors and the zygote that makes them."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease

from . import stimuli as on
from .executor.frames import Garbage
from .executor.zygote import DIED, FAILED, FORKED, KILL, MESSAGE, SPAWN
from .executor_process import ExecutorProcess

Items = Sequence[bytes | memoryview] | None
Look = Callable[[int], None]
"""What the selector's key carries: call it with the events."""


class Zygote:
    """The process that forks executors. Neither its memory nor its environment has ever seen the token."""

    def __init__(self, tmp: str | None) -> None:
        self._tmp = tmp
        self.start()

    def start(self) -> None:
        """Start the process; again, when it was lost."""
        self.socket, theirs = socket.socketpair()
        environment = {name: text for name, text in os.environ.items() if not name.startswith("CLOUDPAR_")}
        if self._tmp is not None:
            environment["TMPDIR"] = self._tmp
        flags = ["-P"] if sys.flags.safe_path else []
        command = [sys.executable, *flags, "-m", "cloudpar_worker.executor.zygote", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], env=environment, start_new_session=True
        )
        theirs.close()

    def tell(self, operation: bytes, executor_id: int, descriptors: list[int]) -> None:
        """Ask for an executor or a kill."""
        message = MESSAGE.pack(operation, executor_id, 0)
        if descriptors:
            socket.send_fds(self.socket, [message], descriptors)
        else:
            self.socket.sendall(message)

    def hear(self) -> Iterator[tuple[bytes, int, int]]:
        """What has come: operation, executor id, figure.

        Raises:
            EOFError: The zygote is gone.
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
        """End it and all executors, and wait for that."""
        self.socket.close()
        self.process.wait(timeout=5)


class Executors:
    """All executor processes. `on_stimulus` takes what they have to say."""

    def __init__(
        self, zygote: Zygote, selector: BaseSelector, tmp: str | None, on_stimulus: Callable[..., None]
    ) -> None:
        self._zygote = zygote
        self._selector = selector
        self._tmp = tmp
        self._on_stimulus = on_stimulus
        self._alive: dict[int, ExecutorProcess] = {}
        self.seen_us = 0
        """A time at which nothing that comes now was there yet."""
        selector.register(zygote.socket, EVENT_READ, self._zygote_spoke)

    def spawn(self, executor_id: int) -> None:
        """Fork one."""
        process = ExecutorProcess(executor_id, self._tmp)
        self._alive[executor_id] = process
        self._zygote.tell(SPAWN, executor_id, process.theirs)
        process.handed_over()

    def kill(self, executor_id: int) -> None:
        """Kill one with its process group; its end is told later."""
        self._zygote.tell(KILL, executor_id, [])

    def feed(
        self, executor_id: int, lease: Lease, tasks: Range, code: bytes, items: Sequence[bytes | memoryview] | None
    ) -> None:
        """Send one a run; to one that has just ended, whose end is not told yet, nothing goes."""
        process = self._alive.get(executor_id)
        if process is not None:
            process.send(lease, *tasks, code, items)
            self._watch(process)

    def _watch(self, process: ExecutorProcess) -> None:
        """Look for what the executor's channel has, and for room if something waits to be sent."""
        events = EVENT_READ | EVENT_WRITE if process.unsent else EVENT_READ
        key = self._selector.get_map().get(process.channel)
        if key is not None and key.events != events:
            self._selector.modify(process.channel, events, key.data)

    def recall(self, executor_id: int, first: int, end: int) -> None:
        """Have one pass over tasks that it has not begun."""
        if executor_id in self._alive:
            self._alive[executor_id].recall(first, end)

    def confirm_recall(self, executor_id: int) -> None:
        """Tell what it has begun, after everything that it had to say."""
        if executor_id in self._alive:
            self._receive(self._alive[executor_id], all_of_it=True)
            self._on_stimulus(on.RecallLooked(executor_id, self._alive[executor_id].started))

    def measure(self, executor_ids: list[int]) -> None:
        """Look at their processes."""
        for executor_id in executor_ids:
            if executor_id in self._alive:
                self._on_stimulus(on.Measured(executor_id, *self._alive[executor_id].measure()))

    def _channel_look(self, executor_id: int) -> Look:
        def look(events: int) -> None:
            process = self._alive.get(executor_id)
            if process is None or process.channel not in self._selector.get_map():
                return  # its end was told in the same round
            if events & EVENT_WRITE:
                process.flush()
                self._watch(process)
            if events & EVENT_READ:
                self._receive(process)

        return look

    def _receive(self, process: ExecutorProcess, *, all_of_it: bool = False) -> None:
        try:
            results = process.receive(all_of_it=all_of_it)
        except Garbage as garbage:
            self._unwatch(process)
            self._on_stimulus(on.GarbageCame(process.executor_id, str(garbage)))
            return
        if process.ended:
            self._unwatch(process)  # the zygote tells the rest
        if results:
            self._on_stimulus(on.Results(process.executor_id, results, self.seen_us))

    def _unwatch(self, process: ExecutorProcess) -> None:
        if process.channel in self._selector.get_map():
            self._selector.unregister(process.channel)

    def _zygote_spoke(self, _events: int) -> None:
        try:
            messages = list(self._zygote.hear())
        except (EOFError, ConnectionError):
            self._zygote_lost()
            return
        for operation, executor_id, figure in messages:
            if operation == FORKED:
                process = self._alive[executor_id]
                process.pid = figure
                self._selector.register(process.channel, EVENT_READ, self._channel_look(executor_id))
                self._on_stimulus(on.ExecutorForked(executor_id))
            elif operation in {DIED, FAILED}:
                self._ended(executor_id, os.waitstatus_to_exitcode(figure) if operation == DIED else None)

    def _zygote_lost(self) -> None:
        """Somebody killed it, and with it all executors."""
        self._selector.unregister(self._zygote.socket)
        self._zygote.close()
        self._zygote.start()
        self._selector.register(self._zygote.socket, EVENT_READ, self._zygote_spoke)
        for executor_id in list(self._alive):
            self._ended(executor_id, None)

    def _ended(self, executor_id: int, exit_code: int | None) -> None:
        process = self._alive[executor_id]
        if process.channel in self._selector.get_map():
            self._receive(process, all_of_it=True)
            self._unwatch(process)
        stdout, stderr = process.outputs()
        del self._alive[executor_id]
        process.close()
        self._on_stimulus(on.ExecutorGone(executor_id, exit_code, stdout, stderr))
