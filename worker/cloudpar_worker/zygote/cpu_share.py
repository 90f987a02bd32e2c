"""Keeps tasks from getting more processor time by starting threads: these together weigh about as much as one.

The kernel shares the processors among the threads that want them, by the weight of each thread. A thread with a greater
niceness has a smaller weight. So this module raises the niceness of the threads that tasks start. Otherwise, a task
with 40 busy processes would leave only 1/41 of a processor to a task beside it. The account of the other task would
also pay for the time for which that task waits. The weights only matter while threads compete: on an idle processor,
each thread runs at full speed.

For the same reason, the agent gives some executors the lowest weight as a whole (see core/nesting.py). A zygote does
this only if it has root's capabilities, because the kernel lets no other process lower a niceness again.
"""

import math
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from cloudpar_worker.sandbox import kernel, uid_pool
from cloudpar_worker.sandbox.processes import processes
from cloudpar_worker.sandbox.sandboxes import Sandbox

from .messages import LIGHTEN, RESTORE, WEIGH

_PATIENCE_S: Final = 5.0
"""The zygote kills a child process that takes longer than this, in seconds: a task with the same user id may have
stopped the child.
"""
_STEP: Final = 1.25
"""The kernel divides a thread's weight by this number for each step of niceness."""
LAST: Final = 19
"""The greatest niceness. 70 or more threads with this niceness weigh more than one thread without niceness."""
_SYS_ADMIN: Final = 1 << 21
_SYS_NICE: Final = 1 << 23


class CpuShare:
    """Raises the niceness of the threads that tasks start, each time in a new child process."""

    def __init__(self) -> None:
        self._under_way: dict[int, tuple[int, float]] = {}
        """For each executor, by its process id: the child process, and the time by which the child must end."""

    def start(self, executor: int, sandbox: Sandbox, request: bytes = WEIGH) -> None:
        """Start a child process that sets the weights of an executor's threads (see `weigh`), unless one still runs.

        With the request LIGHTEN or RESTORE, the child first sets the weight of the whole executor (see `set_weight`).

        Raises:
            OSError: The system permits no further process.
        """
        child, until = self._under_way.get(executor, (0, 0.0))
        if child:
            if time.monotonic() >= until:
                os.kill(child, signal.SIGKILL)
            return
        child = os.fork()
        if child:
            self._under_way[executor] = child, time.monotonic() + _PATIENCE_S
            return
        with suppress(BaseException):
            if request != WEIGH and sandbox.uid is not None:
                set_weight(executor, sandbox.uid, request)
            weigh(executor, sandbox.uid)
        os._exit(0)

    def ended(self, child: int) -> None:
        """Handle the end of a child of the zygote."""
        self._under_way = {executor: known for executor, known in self._under_way.items() if known[0] != child}


class Thread(NamedTuple):
    """A thread that runs, or waits for a processor."""

    number: int
    process: int
    session: int
    niceness: int


def set_weight(executor: int, user: int, request: bytes) -> None:
    """Give all threads of an executor the lowest weight (LIGHTEN), or their usual weight again (RESTORE).

    Without the capabilities of root it does nothing, because the executor could not get its weight back.

    Args:
        executor: The executor's process id.
        user: The executor's own user id. The processes of this user are the executor and all that it has started.
        request: LIGHTEN or RESTORE.
    """
    needed = _SYS_ADMIN | _SYS_NICE
    # If the worker was started with `nice`, the zygote has the niceness that its executors usually have.
    usual, now = os.getpriority(os.PRIO_PROCESS, 0), os.getpriority(os.PRIO_PROCESS, executor)
    if kernel.capabilities() & needed != needed or (request == RESTORE and now != LAST):
        return
    with suppress(OSError, ValueError):  # this kernel has no autogroup
        _weigh_session(executor, user, LAST if request == LIGHTEN else 0, lowers=True)
    # One call changes all threads of this user at the same moment. This call comes last, because the niceness of the
    # main thread shows whether the weight has been set.
    os.setpriority(os.PRIO_USER, user, LAST if request == LIGHTEN else usual)


def weigh(executor: int, user: int | None) -> None:
    """Raise the niceness of an executor's threads that need a processor, except the main thread, which runs tasks.

    The niceness only grows here, because the kernel does not let an ordinary process lower it.

    Args:
        executor: The executor's process id.
        user: The executor's own user id, which this process takes for good; None if the executor has none.
    """
    # The capability SYS_ADMIN is necessary for two things: for changing many sessions in a row, and for changing the
    # sessions of processes that hide their memory. A process with this capability changes the sessions before it
    # changes its user.
    privileged = kernel.capabilities() & _SYS_ADMIN
    if user is not None and not privileged:
        kernel.act_as(user, uid_pool.guard_uid(user))
    threads = [each for pid in _family(executor, user) for each in _runnable(pid) if each.number != executor]
    # The kernel may first share the processors among sessions (autogroup). The niceness of a thread then counts only
    # within its session. Without the following lines, each session that a task makes would weigh as much as the
    # executor's session.
    sessions = {each.session: each.process for each in threads if each.session != executor}
    main = os.getpriority(os.PRIO_PROCESS, executor)
    # A new session weighs as much as any other, even if an executor with the lowest weight has made it.
    least = LAST if main == LAST else niceness(len(sessions))
    for process in sessions.values():
        # An error means that the process has ended, that it hides its memory (with one user for all executors), or that
        # this kernel has no autogroup.
        with suppress(OSError, ValueError):
            _weigh_session(process, user, least)
    if user is not None and privileged:
        # If a thread has ended, a thread of another user may get its number. A process of this user cannot change the
        # thread of the other user.
        kernel.act_as(user, uid_pool.guard_uid(user))
    # If the worker was started with `nice`, the main threads already have a niceness. Threads that tasks start must
    # have a greater niceness.
    wanted = min(main + niceness(len(threads)), LAST)
    for thread in threads:
        if thread.niceness < wanted:
            with suppress(OSError):  # the thread has ended
                os.setpriority(os.PRIO_PROCESS, thread.number, wanted)


def niceness(threads: int) -> int:
    """Return the least niceness with which this many threads together weigh no more than one without niceness."""
    return min(math.ceil(math.log(threads, _STEP)), LAST) if threads > 1 else 0


def _family(executor: int, user: int | None) -> Iterable[int]:
    """Return an executor and all processes that it has started."""
    there = {each.pid: each for each in processes()}
    if user is not None:
        return [pid for pid, each in there.items() if each.user == user]
    family = {executor}
    for pid in there:
        line: list[int] = []
        above = there.get(pid)
        while above is not None and above.pid not in family and above.pid not in line:
            line.append(above.pid)
            above = there.get(above.parent)
        if above is not None and above.pid in family:
            family.update(line)
    return family


def _runnable(pid: int) -> Iterator[Thread]:
    """Yield the threads of a process that run, or wait for a processor."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/task"):
            with suppress(OSError), open(f"/proc/{pid}/task/{name}/stat", "rb") as file:
                # The fields follow the name of the thread, which is in parentheses and may contain anything.
                fields = file.read().rpartition(b")")[2].split()
                if fields[0] == b"R":
                    yield Thread(int(name), pid, int(fields[3]), int(fields[16]))


def _weigh_session(process: int, user: int | None, wanted: int, *, lowers: bool = False) -> None:
    """Raise the niceness of a process's session, which the kernel schedules as a whole.

    With `lowers`, set the niceness even if it becomes lower.
    """
    # An open folder of /proc stays the folder of the same process. If the process ends and a process of another user
    # gets its number, the files that are opened below never belong to that other process.
    folder = os.open(f"/proc/{process}", os.O_PATH | os.O_DIRECTORY)
    try:
        with open("status", "rb", opener=lambda name, flags: os.open(name, flags, dir_fd=folder)) as status:
            (owner,) = [int(line.split()[1]) for line in status if line.startswith(b"Uid:")]
        if user is None or owner == user:
            group = os.open("autogroup", os.O_RDWR, dir_fd=folder)
            try:
                if lowers or int(os.read(group, 100).split()[-1]) < wanted:
                    os.write(group, b"%d" % wanted)
            finally:
                os.close(group)
    finally:
        os.close(folder)
