"""The agent's main thread: gives stimuli to the state machine, and carries out the instructions that it returns."""

import contextlib
import os
import platform
import selectors
import signal
import socket
import time
import traceback
from collections import deque
from collections.abc import Callable

from msgspec.structs import astuple

from cloudpar_protocol.payloads import Range
from cloudpar_protocol.transport.payload_folder import PayloadFolder
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.core import instructions as do
from cloudpar_worker.core import stimuli as on
from cloudpar_worker.core.lease_record import LeaseRecord
from cloudpar_worker.core.publishing import unpublished
from cloudpar_worker.core.state import WorkerState

from .executors import Executors
from .master_io import MasterIO
from .reach import warn
from .settings import WorkerSettings
from .signs import Signs
from .task_credentials import CredentialStore
from .zygotes import Zygotes

_Action = Callable[..., object]

UNREACHABLE = 4
"""The exit code of an agent that ends with open leases, because it could not reach the master. The command line uses
the same code.
"""
_PARENT_S = 1.0
"""While no events come, the agent checks at least once in this many seconds whether its parent process is gone. Usually
the end of standard input shows this sooner.
"""
HOST_CHARS = 200
"""The most characters of the machine's name in a message; the agent omits the rest."""
_LINGER_S = 0.001
"""The agent does not wait for more results if the wait would be this short or shorter, in seconds. Such a wait is not
worth its system call.
"""
_BLOCKED_US = 500
"""If a wait for events took longer than this, in microseconds, the agent assumes that the events came at the end of the
wait.
"""


class Agent:
    """One worker's agent.

    Args:
        settings: The worker's settings.
        zygotes: The worker's zygotes. The first zygote has started.
        stdin: The descriptor of standard input; the agent ends when standard input ends.
        own_users: Whether each executor has a user of its own. Only then do tasks get the AWS credentials of their
            account: otherwise tasks of another account could read them.
        offline: Whether this worker can keep the tasks of an account from the network.

    Raises:
        ValueError: The endpoint is not a URL, or the token has characters that a token cannot have.
    """

    def __init__(
        self, settings: WorkerSettings, zygotes: Zygotes, stdin: int, *, own_users: bool = False, offline: bool = False
    ) -> None:
        self._state = WorkerState(
            executors=settings.executors,
            memory_bytes=settings.memory_bytes,
            pythons=list(settings.interpreters),
            host=platform.node()[:HOST_CHARS],
            shared=settings.isolation == "shared",
            offline=offline,
        )
        # The agent does not use epoll, because the kernel limits the number of epoll watches of each user. If executors
        # have the agent's user, a task could use up all watches, and the agent would end when it starts the next
        # executor.
        self._selector = selectors.PollSelector()
        self._stimuli: deque[on.Stimulus] = deque()
        self._delivered: deque[on.Stimulus] = deque()  # other threads and signal handlers append to it at any moment
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector.register(self._woken, selectors.EVENT_READ, self._on_wake)
        self._stdin = stdin
        self._selector.register(stdin, selectors.EVENT_READ, self._on_stdin)
        self._others = selectors.PollSelector()  # all event sources except the executors' channels
        for other in (self._woken, stdin):
            self._others.register(other, selectors.EVENT_READ)
        credentials = CredentialStore() if own_users else None
        self._executors = Executors(zygotes, self._selector, settings, self._stimuli.append, credentials)
        zygotes.listen(self._executors, [self._selector, self._others])
        folder = None if settings.payload_folder is None else PayloadFolder(settings.payload_folder)
        self._signs = Signs(settings.signs)
        self._master_io = MasterIO(
            settings.endpoint, settings.token, settings.executors, self._deliver, folder,
            memory_bytes=settings.memory_bytes, own=settings.isolation == "own", credentials=credentials,
            offline=offline, heard=self._signs.heard,
        )  # fmt: skip
        self._actions: dict[type[do.Instruction], _Action] = {
            do.Spawn: self._executors.spawn,
            do.Kill: self._executors.kill,
            do.Feed: self._feed,
            do.Recall: self._executors.recall,
            do.CheckRecall: self._executors.check_recall,
            do.Measure: self._executors.measure,
            do.Download: self._master_io.download,
            do.Discard: self._master_io.payloads.discard,
            do.Forget: self._forget,
            do.Publish: self._master_io.publish,
            do.Extend: self._master_io.extend,
            do.GiveBackTasks: self._master_io.give_back,
            do.Warn: warn,
            do.Exit: self._end,
        }
        """For each type of instruction, the function to call with the instruction's fields."""
        self._unready = settings.executors
        self._exit_code: int | None = None
        self._draining = self._interrupted = False
        self._parent = os.getppid()

    def run(self) -> int:
        """Run until the worker has drained, or ends for another reason; return the exit code.

        The code is 0 after a drain, 4 if the drain gave up because the master could not be reached, and 1 if the parent
        is gone. It is 130 after an interrupt, which is SIGINT, a second SIGTERM, or the end of standard input.
        `MasterIO` itself ends the process with code 3 if the master refuses the worker token or this worker, and with
        code 70 if one of its threads raises an unexpected error.
        """
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        self._stimuli.append(on.TimePassed())
        polled_at_us = _now_us()
        while not self._interrupted:
            self._handle_stimuli()
            if self._exit_code is not None:
                return self._exit_code
            waited_from_at_us = _now_us()
            timeout_s = min(max((self._state.deadline_at_us - waited_from_at_us) / 1e6, 0.0), _PARENT_S)
            events = self._selector.select(timeout_s)
            now_us = _now_us()
            blocked = now_us - waited_from_at_us > _BLOCKED_US
            # Results that the agent reads now came after the previous `select` or, if the latest `select` blocked, at
            # the end of the latest. So the executors of these results worked at least until `absent_at_us`, even if
            # they report less time (ExecutorRecord.audit).
            self._executors.absent_at_us = now_us - _BLOCKED_US if blocked else polled_at_us
            polled_at_us = now_us
            for key, mask in events:
                key.data(mask)
            if not events:
                if os.getppid() != self._parent:
                    return 1
                self._executors.end_idle_zygotes(now_us)
                self._stimuli.append(on.TimePassed())
            self._linger()
        return 130

    def _linger(self) -> None:
        """If nothing but results has arrived, wait a little for more results.

        The wait ends at once if anything arrives that does not come from an executor.
        """
        if all(isinstance(stimulus, on.Results) for stimulus in self._stimuli):
            self._handle_stimuli()
            linger_s = self._state.linger_us(_now_us()) / 1e6
            if linger_s > _LINGER_S:
                self._others.select(linger_s)

    def _handle_stimuli(self) -> None:
        while self._stimuli:
            stimulus = self._stimuli.popleft()
            for instruction in self._state.handle(stimulus, _now_us()):
                self._carry_out(instruction)
            if isinstance(stimulus, on.Extended):
                self._executors.renew_credentials()  # a beat may have brought new credentials
            if self._state.facts.leases:
                self._signs.leased()
            if self._unready and isinstance(stimulus, on.ExecutorReady):
                self._unready -= 1
                if not self._unready:
                    self._announce()

    def _announce(self) -> None:
        """Tell the parent process that the agent is ready. If the agent ends after this, a task may be the cause."""
        self._unready = 0
        print('{"event":"ready"}', flush=True)

    def _carry_out(self, instruction: do.Instruction) -> None:
        if isinstance(instruction, do.Retrieve):
            self._master_io.retrieve(instruction)
        else:
            self._actions[type(instruction)](*astuple(instruction))

    def _feed(self, executor_id: int, lease: Lease, tasks: Range) -> None:
        if self._unready:  # even before all executors are ready, because this task may end the agent
            self._announce()
        payloads = self._master_io.payloads
        try:
            self._executors.feed(executor_id, lease, tasks, payloads.codes.of(lease), payloads.items(lease, *tasks))
        except Exception as error:  # noqa: BLE001 - such as MemoryError: one account's payload must not end the agent
            traceback.print_exc()
            warn(f"cannot send tasks of package {lease.package_id} to an executor, and replaces it: {error!r}")
            self._executors.kill(executor_id)  # as if the system had killed it: the tasks run again a few times

    def _forget(self, lease_id: str) -> None:
        self._master_io.forget(lease_id, [record.lease for record in self._state.facts.leases.values()])

    def _end(self, left: list[LeaseRecord]) -> None:
        if left:
            warn(
                f"ends, because it cannot reach the master; left unpublished: {unpublished(left)}; "
                "the master hands these tasks out again when their leases expire"
            )
        else:
            self._master_io.leave()
        self._exit_code = UNREACHABLE if left else 0

    def _deliver(self, stimulus: on.Stimulus) -> None:
        """Pass a stimulus from another thread, or from a signal handler, to the main thread."""
        self._delivered.append(stimulus)
        with contextlib.suppress(BlockingIOError):  # the socket is full, so the main thread will wake up anyway
            self._wake.send(b"\0")

    def _on_wake(self, _events: int) -> None:
        self._woken.recv(4096)
        while self._delivered:
            self._stimuli.append(self._delivered.popleft())

    def _on_stdin(self, _events: int) -> None:
        if not os.read(self._stdin, 4096):
            self._interrupted = True

    def _on_signal(self, number: int, _frame: object) -> None:
        if number == signal.SIGTERM and not self._draining:
            self._draining = True
            self._deliver(on.DrainRequested())
            self._master_io.abandon_retrieval()
        else:
            self._interrupted = True


def _now_us() -> int:
    return time.monotonic_ns() // 1000
