"""The process from which executors are forked: `python -m cloudpar_worker.zygote FD [CONFINEMENT]`.

The zygote has one thread, has imported what executors need, and runs no task code. A fork therefore takes a few
milliseconds and is safe. The agent starts the zygote as a new program and does not fork itself, so the zygote's memory
never contains the worker token. Over the socket FD the agent sends requests to the zygote: to fork executors, to kill
them, to measure their memory, and to lower the priority of the threads that their tasks start (see cpu_share). The
zygote reports how each executor ended. When the agent ends, even by a crash, the socket closes, and the zygote kills
all executors. On Linux, the executors of a shared worker are confined to sandboxes, by the settings in CONFINEMENT.
"""

import contextlib
import faulthandler
import gc
import os
import selectors
import signal
import socket
import sys
import traceback
from types import ModuleType
from typing import Final, NoReturn

from cloudpar_protocol.nesting import OwnPool
from cloudpar_worker.executor import project_folders
from cloudpar_worker.executor.capture import Capture
from cloudpar_worker.executor.credentials_page import CredentialsPage
from cloudpar_worker.executor.frames import READY
from cloudpar_worker.executor.project_folders import ProjectFolders
from cloudpar_worker.executor.recall import RecallPage
from cloudpar_worker.executor.refusals import Refusals
from cloudpar_worker.executor.runner import Runner
from cloudpar_worker.executor.waiting import take_own_pool
from cloudpar_worker.sandbox.confinement import Confinement, decode
from cloudpar_worker.sandbox.kernel import LINUX, die_with_parent, hide_memory, offer_to_the_oom_killer
from cloudpar_worker.sandbox.sandboxes import Sandbox, Sandboxes

from .cpu_share import CpuShare
from .memory_meter import MemoryMeter
from .messages import DIED, FAILED, FORKED, KILL, MEASURED, MESSAGE, SPAWN, SPAWN_FDS, UNKNOWN, WEIGHTS

_ENDING_S: Final = 0.1
"""A zygote that ends checks at least once in this many seconds whether its executors and cleanups have ended."""
_AGAIN_S: Final = 1.0
"""While measurements run or cleanups wait, the zygote wakes up at least once in this many seconds. After it has woken
up, it kills measurements that take too long, and tries again to start the cleanups.
"""


class Zygote:
    """Forks, kills and reaps executors."""

    def __init__(self, agent: socket.socket, confinement: Confinement | None, own_pool: OwnPool | None) -> None:
        self._agent = agent
        self._own_pool = own_pool
        self._executors: dict[int, tuple[int, Sandbox | None]] = {}
        """For each process id: the executor's id and its sandbox."""
        self._projects = ProjectFolders()
        self._sandboxes = Sandboxes(confinement, self._executors.keys()) if confinement else None
        self._refusals = Refusals()
        if confinement and self._sandboxes:
            self._refusals = Refusals(
                confinement.closed_ports,
                self._sandboxes.own_uids,
                files=True,
                network=confinement.network == "outbound",
                common_memory=self._sandboxes.own_uids and not self._sandboxes.own_shared_memory,
            )
        self._memory_meter = MemoryMeter()
        self._cpu_share = CpuShare()
        self._obstacle = ""
        """The last printed reason why an executor could not start."""
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)

    def serve(self) -> None:
        """Serve until the agent is gone."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        selector = selectors.PollSelector()  # not epoll: tasks of the same user may use up the user's epoll watches
        selector.register(self._agent, selectors.EVENT_READ)
        selector.register(self._woken, selectors.EVENT_READ)
        alive = True
        while alive:
            polls = self._memory_meter.busy or (self._sandboxes and self._sandboxes.waiting)
            ready = selector.select(_AGAIN_S if polls else None)
            self._memory_meter.kill_overdue()
            if not ready:
                self._reap()
            for key, _ in ready:
                if key.fileobj is self._woken:
                    self._on_wake()
                    self._reap()
                else:
                    alive = self._handle_message()
        self._end(selector)

    def _end(self, selector: selectors.BaseSelector) -> None:
        for pid in self._executors:
            _kill_group(pid)
        selector.unregister(self._agent)
        while self._sandboxes and (self._executors or self._sandboxes.cleaning):
            self._reap()
            if self._executors or self._sandboxes.cleaning:
                selector.select(_ENDING_S)
                self._on_wake()
        self._projects.remove_all()

    def _on_wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)

    def _handle_message(self) -> bool:
        try:
            message, descriptors, _, _ = socket.recv_fds(self._agent, MESSAGE.size, SPAWN_FDS)
            while message and len(message) < MESSAGE.size:
                message += self._agent.recv(MESSAGE.size - len(message))
        except OSError:
            return False
        if not message:
            return False
        operation, executor_id, _ = MESSAGE.unpack(message)
        if operation == SPAWN:
            self._spawn(executor_id, descriptors)
        else:
            for pid, (known, sandbox) in self._executors.items():
                if known == executor_id and operation == KILL:
                    _kill_group(pid)
                elif known == executor_id and operation in WEIGHTS:
                    if sandbox is not None:
                        with contextlib.suppress(OSError):  # no further process can start; the agent soon asks again
                            self._cpu_share.start(pid, sandbox, operation)
                elif known == executor_id:
                    self._measure(executor_id, pid, sandbox)
        return True

    def _measure(self, executor_id: int, pid: int, sandbox: Sandbox | None) -> None:
        try:
            self._memory_meter.start(executor_id, pid, sandbox)
        except OSError:
            self._send(MEASURED, executor_id, UNKNOWN)

    def _spawn(self, executor_id: int, descriptors: list[int]) -> None:
        parent = os.getpid()
        project = self._projects.new()
        try:
            sandbox = self._sandboxes.create() if self._sandboxes else None
            pid = self._fork(sandbox)
        except OSError as error:
            if str(error) != self._obstacle:  # each further attempt would say the same
                self._obstacle = str(error)
                print(f"cloudpar: executors cannot start: {error}", file=sys.stderr, flush=True)
            self._send(FAILED, executor_id, error.errno or 0)
        else:
            if pid == 0:
                if sandbox is None:  # otherwise the sandbox has a folder
                    project_folders.folder = project
                self._become_executor(parent, descriptors, sandbox)
            self._executors[pid] = executor_id, sandbox
            self._projects.given(project, pid)
            self._send(FORKED, executor_id, pid)
        for descriptor in descriptors:
            os.close(descriptor)

    def _fork(self, sandbox: Sandbox | None) -> int:
        try:
            return os.fork()
        except OSError:
            if self._sandboxes and sandbox:
                self._sandboxes.discard(sandbox)
            raise

    def _become_executor(self, parent: int, descriptors: list[int], sandbox: Sandbox | None) -> NoReturn:
        code = 1
        try:
            # This call comes first: if the zygote dies later, the kernel ends this process, and nothing else could end
            # it.
            die_with_parent(parent)
            offer_to_the_oom_killer()
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            channel = socket.socket(fileno=descriptors[0])
            capture = Capture(descriptors[1], descriptors[2])
            recall = RecallPage(descriptors[3])
            for descriptor in descriptors[1:4]:
                os.close(descriptor)
            page = descriptors[4:]
            if self._sandboxes and sandbox:
                self._sandboxes.enter(sandbox, parent)
            shared_memory = [] if sandbox is None or sandbox.shared_memory is None else [sandbox.shared_memory]
            _close_all_but(channel.fileno(), *capture.descriptors, *shared_memory, *page)
            sys.modules["__main__"] = ModuleType("__main__")
            credentials = CredentialsPage(page[0]) if page else None
            # READY comes last, because the agent blames no task if an executor ends before it has sent READY.
            _send_ready(channel, shared_memory)
            Runner(channel, capture, recall, self._refusals, self._own_pool, credentials=credentials).serve()
            code = 0
        except BaseException:  # noqa: BLE001 - the agent reads the traceback from standard error
            traceback.print_exc()
        finally:
            os._exit(code)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            self._reap_all()
        if self._sandboxes:
            self._sandboxes.clean_up()

    def _reap_all(self) -> None:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            executor_id, sandbox = self._executors.pop(pid, (None, None))
            if executor_id is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(pid, signal.SIGKILL)  # kill the processes that task code left running
                self._send(DIED, executor_id, status)
                self._projects.remove(pid)
            self._cpu_share.ended(pid)
            measured = self._memory_meter.ended(pid)
            if measured is not None:
                self._send(MEASURED, *measured)
            elif self._sandboxes and sandbox:
                self._sandboxes.left(sandbox)
            elif self._sandboxes:
                self._sandboxes.ended(pid, status)

    def _send(self, operation: bytes, executor_id: int, figure: int) -> None:
        with contextlib.suppress(OSError):  # the agent is gone; the next read of the socket shows this
            self._agent.sendall(MESSAGE.pack(operation, executor_id, figure))


def _send_ready(channel: socket.socket, descriptors: list[int]) -> None:
    """Tell the agent that the executor is ready, and give it these descriptors."""
    if descriptors:
        socket.send_fds(channel, [READY], descriptors)
    else:
        channel.sendall(READY)
    for descriptor in descriptors:
        os.close(descriptor)


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)  # a process forked a moment ago may not have its own group yet


def _close_all_but(*kept: int) -> None:
    """Close the descriptors that an executor must not inherit, such as the zygote's end of the socket to the agent.

    Through that socket, task code could ask the zygote to kill the executors of other accounts.
    """
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in kept:
            with contextlib.suppress(OSError):  # this is the descriptor that listed the folder, which is closed already
                os.close(int(name))


def main() -> None:
    """Serve the agent over the socket whose descriptor is the first argument."""
    agent = socket.socket(fileno=int(sys.argv[1]))
    faulthandler.enable(file=2)  # a crash then writes its Python stack to the executor's standard error
    confinement = decode(sys.argv[2]) if len(sys.argv) > 2 and LINUX else None
    if confinement:
        hide_memory()
    gc.collect()
    gc.freeze()  # so that the collector does not copy the pages that executors share
    Zygote(agent, confinement, take_own_pool(os.environ)).serve()
    os._exit(0)  # without Python's cleanup: nothing is left, and signals about ended children may still come


if __name__ == "__main__":
    main()
