"""Manages all executors of an agent. The agent's zygotes fork the executors."""

import os
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector
from typing import Final

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.executor.frames import Garbage
from cloudpar_worker.sandbox.kernel import LINUX
from cloudpar_worker.zygote.messages import DIED, FAILED, FORKED, KILL, LIGHTEN, MEASURED, RESTORE, WEIGH

from .crash_report import without_own_frames
from .executor_process import ExecutorProcess
from .memory_monitor import MemoryMonitor
from .payload_file import InFile
from .reach import warn
from .settings import WorkerSettings
from .task_credentials import CredentialStore
from .zygotes import Zygotes

THREADS: Final = 2
"""If an executor has more threads than this, the agent asks the zygote to lower the priority of those that tasks have
started (see zygote/cpu_share.py). A single thread beside the main thread keeps its priority.
"""
WEIGHT_S: Final = 2.0
"""The agent repeats a request to set the weight of a whole executor after this many seconds."""

EventHandler = Callable[[int], None]
"""The data of a selector key: a function to call with the events."""


class Executors:
    """All executors of one agent. This object calls `on_stimulus` with a stimulus for each report of an executor.

    Tasks get the AWS credentials in `credentials`. If executors share a user, `credentials` is None: otherwise tasks of
    one account could read the credentials of another.
    """

    def __init__(
        self,
        zygotes: Zygotes,
        selector: BaseSelector,
        settings: WorkerSettings,
        on_stimulus: Callable[..., None],
        credentials: CredentialStore | None = None,
    ) -> None:
        self._zygotes = zygotes
        self._selector = selector
        self._tmp, self._memory_bytes = settings.tmp, settings.memory_bytes
        self._shared = settings.isolation == "shared"
        self._memory = MemoryMonitor(zygotes, self._memory_bytes, on_stimulus)
        self._on_stimulus = on_stimulus
        self._credentials = credentials
        self._alive: dict[int, ExecutorProcess] = {}
        self.absent_at_us = 0
        """The latest time at which the results that the agent reads now had certainly not arrived yet."""

    def spawn(self, executor_id: int, python: str) -> None:
        """Fork an executor for a version of Python. If this is not possible, report the executor's end at once.

        It is not possible if the ExecutorProcess cannot be made, or if the zygote cannot be started or has just ended.
        """
        try:
            process = ExecutorProcess(
                executor_id, python, self._tmp, self._memory_bytes, credentials=self._credentials is not None,
                takes_files=LINUX and not self._shared,
            )  # fmt: skip
        except OSError as error:  # no descriptors, or no space for its output files
            warn(f"an executor cannot start, and the agent tries another one soon: {error}")
            self._on_stimulus(on.ExecutorGone(executor_id, None))
            return
        self._alive[executor_id] = process
        try:
            self._zygotes.spawn(python, executor_id, process.theirs)
        except OSError:
            self._ended(executor_id, None)
        else:
            process.handed_over()

    def kill(self, executor_id: int) -> None:
        """Kill an executor with its process group, unless it has ended already. The zygote reports the end later."""
        if executor_id in self._alive:
            self._zygotes.send(self._alive[executor_id].python, KILL, executor_id)

    def end_idle_zygotes(self, now_us: int) -> None:
        """End the zygotes that have had no executor for `zygotes.IDLE_US`, except the first."""
        self._zygotes.end_idle({process.python for process in self._alive.values()}, now_us)

    def feed(
        self,
        executor_id: int,
        lease: Lease,
        tasks: Range,
        code: bytes | InFile,
        items: Sequence[bytes | memoryview] | InFile | None,
    ) -> None:
        """Send a run of tasks to an executor; drop the run if the executor has already ended."""
        process = self._alive.get(executor_id)
        if process is not None:
            credentials = None if self._credentials is None else self._credentials.of(lease.package_id)
            process.send(lease, *tasks, code, items, credentials=credentials)
            self._watch(process)

    def renew_credentials(self) -> None:
        """Give running tasks the newest credentials of their packages."""
        if self._credentials is not None:
            for process in self._alive.values():
                process.give(self._credentials.of(process.package_id))

    def _watch(self, process: ExecutorProcess) -> None:
        """Make the selector report data in an executor's channel, and free space in it while there is data to send."""
        events = EVENT_READ | EVENT_WRITE if process.unsent else EVENT_READ
        key = self._selector.get_map().get(process.channel)
        if key is not None and key.events != events:
            self._selector.modify(process.channel, events, key.data)

    def recall(self, executor_id: int, first: int, end: int) -> None:
        """Tell an executor to skip those of its tasks [first, end) that it has not started.

        The first task that the executor ever got is number 0.
        """
        if executor_id in self._alive:
            self._alive[executor_id].recall_page.recall(first, end)

    def check_recall(self, executor_id: int) -> None:
        """Report all results that an executor has sent, and then report how many tasks it has started or skipped."""
        if executor_id in self._alive:
            self._receive(self._alive[executor_id], all_of_it=True)
            self._on_stimulus(on.RecallChecked(executor_id, self._alive[executor_id].recall_page.started))

    def measure(self, executor_ids: list[int], light: Collection[int]) -> None:
        """Measure the memory and output of these executors.

        On a shared worker, also ask the zygote to change priorities. Executors in `light` get the lowest priority as a
        whole. Other executors that have the lowest priority get their usual priority again. In executors that have
        started processes or threads, the threads that tasks have started get a lower priority.
        """
        wanted = [self._alive[executor_id] for executor_id in executor_ids if executor_id in self._alive]
        self._memory.measure(wanted, self._alive.values())
        for process in wanted if self._shared else []:
            if self._set_weight(process, light=process.executor_id in light):
                continue
            if self._memory.started(process.executor_id) or process.threads() > THREADS:
                self._zygotes.send(process.python, WEIGH, process.executor_id)

    def _set_weight(self, process: ExecutorProcess, *, light: bool) -> bool:
        """Ask the zygote to give an executor the lowest priority, or the usual one again. Return whether it is asked.

        The zygote starts a process for each request, so the agent repeats a request only after WEIGHT_S. The agent must
        repeat it for two reasons: the task may have started threads since, and the zygote ignores a request while it
        carries out an earlier one.
        """
        if not light and not (process.weight_request and process.is_light()):
            process.weight_request = b""
            return False
        request, now_s = LIGHTEN if light else RESTORE, time.monotonic()
        if process.weight_request == request and now_s < process.weight_request_s + WEIGHT_S:
            return False
        process.weight_request, process.weight_request_s = request, now_s
        self._zygotes.send(process.python, request, process.executor_id)
        return True

    def _channel_handler(self, executor_id: int) -> EventHandler:
        def handle(events: int) -> None:
            process = self._alive.get(executor_id)
            if process is None or process.channel not in self._selector.get_map():
                return  # the executor's end, or garbage from it, was handled in the same round of events
            if events & EVENT_WRITE:
                process.flush()
                self._watch(process)
            if events & EVENT_READ:
                self._receive(process)

        return handle

    def _receive(self, process: ExecutorProcess, *, all_of_it: bool = False) -> None:
        was_ready = process.ready
        try:
            results = process.receive(all_of_it=all_of_it)
        except Exception as error:  # noqa: BLE001 - what one executor sends must not end the agent, and so all other tasks
            self._unwatch(process)
            if not isinstance(error, Garbage):
                traceback.print_exc()
            self._on_stimulus(on.GarbageReceived(process.executor_id, str(error) or type(error).__name__))
            return
        if process.ready and not was_ready:
            self._on_stimulus(on.ExecutorReady(process.executor_id))
        if process.ended:
            self._unwatch(process)  # the zygote reports how the executor ended
        if results:
            self._on_stimulus(on.Results(process.executor_id, results, self.absent_at_us))
        waits = process.mark()
        if waits is not None:
            self._on_stimulus(on.TaskWaits(process.executor_id, waits))

    def _unwatch(self, process: ExecutorProcess) -> None:
        if process.channel in self._selector.get_map():
            self._selector.unregister(process.channel)

    def on_message(self, operation: bytes, executor_id: int, figure: int) -> None:
        """Handle a message of a zygote."""
        if operation == FORKED:
            process = self._alive[executor_id]
            process.pid = figure
            self._selector.register(process.channel, EVENT_READ, self._channel_handler(executor_id))
        elif operation == MEASURED:
            if executor_id in self._alive:
                self._memory.on_answer(self._alive[executor_id], figure)
        elif operation in {DIED, FAILED}:
            self._ended(executor_id, os.waitstatus_to_exitcode(figure) if operation == DIED else None)

    def on_exit(self, python: str, *, for_good: bool) -> None:
        """Handle the end of a zygote and its executors. With `for_good` no other zygote of this Python is started."""
        for executor_id, process in list(self._alive.items()):
            if process.python == python:
                self._ended(executor_id, None)
        if for_good:
            warn(f"the interpreter for Python {python} does not start: packages that need it are refused")
            self._on_stimulus(on.PythonFailed(python))

    def _ended(self, executor_id: int, exit_code: int | None) -> None:
        process = self._alive[executor_id]
        if process.channel in self._selector.get_map():
            # Results that the executor wrote before its end must be reported before ExecutorGone. Otherwise the agent
            # would blame the wrong task, and would run tasks again that have ended.
            self._receive(process, all_of_it=True)
            self._unwatch(process)
        stdout, stderr = process.outputs()
        del self._alive[executor_id]
        self._memory.forget(executor_id)
        process.close()
        if stderr and not process.ready:
            warn(f"an executor cannot start, and the agent tries another one soon: {stderr.splitlines()[-1]}")
        report = stderr and without_own_frames(stderr)
        self._on_stimulus(on.ExecutorGone(executor_id, exit_code, stdout, report))
