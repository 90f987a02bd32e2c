"""Messages for users about tasks that ended without a value and without an exception of their own.

Each function except `ended_by` and `too_large` makes the Stop of a task. Its docstring describes the case in which the
task ends in this way.
"""

import signal
from typing import Final

from .executor_record import Stop

_SIGNAL_NAMES: Final = {
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGBUS: "a bus error",
    signal.SIGABRT: "an abort",
    signal.SIGFPE: "an arithmetic fault",
    signal.SIGILL: "an illegal instruction",
}
CANCELLED: Final = "the task was cancelled while it ran"
"""The message in the result of a task that has run, but whose result the master does not want any more."""
KILLS: Final = 3
"""If an executor ends by SIGKILL or for an unknown reason, its task runs again. After this many such ends during the
same task, the task counts as their cause.
"""


def ended_by(exit_code: int | None) -> str:
    """Return a phrase that says how an executor ended."""
    if exit_code is None:
        return "its executor ended for an unknown reason"
    if exit_code >= 0:
        return f"its executor ended with exit code {exit_code}, by os._exit or the like"
    try:
        number = signal.Signals(-exit_code)
    except ValueError:
        return f"its executor was ended by signal {-exit_code}"
    if number == signal.SIGKILL:
        return "its executor was killed by SIGKILL, often the kernel's out-of-memory killer"
    name = _SIGNAL_NAMES.get(number)
    return f"its executor ended by {name} ({number.name})" if name else f"its executor was ended by {number.name}"


def crash(exit_code: int | None, lease_id: str, index: int) -> Stop:
    """The executor ended during the task, and the agent had not stopped the executor."""
    text = f"the task did not return: {ended_by(exit_code)}"
    if exit_code == -signal.SIGKILL:
        text += f"; it was tried {KILLS} times: use less memory per task, or a worker with more"
    return Stop("crashed", text, lease_id, index)


def timeout(limit_s: float, lease_id: str, index: int) -> Stop:
    """The task reached its time limit."""
    message = (
        f"the task reached its time limit of {limit_s:g} s and was stopped: raise task_timeout_s (up to the "
        "operator's maximum), or split the task"
    )
    return Stop("timeout", message, lease_id, index)


def quota(lease_id: str, index: int) -> Stop:
    """The task's package has no budget left, because the account's quota is used up."""
    message = (
        "the task reached the end of the account's compute-time quota and was stopped: ask the operator for more "
        "(cloudpar account grant)"
    )
    return Stop("quota", message, lease_id, index)


def cancelled(lease_id: str, index: int) -> Stop:
    """The master does not want the task's result any more, for example because the user cancelled the task."""
    return Stop("cancelled", CANCELLED, lease_id, index)


def memory(rss_bytes: int, limit_bytes: int, lease_id: str, index: int) -> Stop:
    """The executor exceeded its memory limit."""
    message = (
        f"the task's executor with all that it started used {rss_bytes >> 20} MB, over its limit of "
        f"{limit_bytes >> 20} MB, and was stopped: use less memory per task, fewer executors, or a higher limit "
        "(memory_mb= of a pool on this machine, --memory-mb of `cloudpar up` and `cloudpar worker`)"
    )
    return Stop("memory", message, lease_id, index)


def too_large(payload_bytes: int, limit_bytes: int) -> str:
    """Return the text for a task that cannot run, because its code and data do not fit into an executor's memory."""
    return (
        f"the code and the data of the task take {payload_bytes >> 20} MB, over its executor's limit of "
        f"{limit_bytes >> 20} MB: send less with each task, or set a higher limit (memory_mb= of a pool on this "
        "machine, --memory-mb of `cloudpar up` and `cloudpar worker`)"
    )


def nested_memory(tasks: int, held_bytes: int, limit_bytes: int, lease_id: str, index: int) -> Stop:
    """Tasks that wait leave too little memory for the tasks that they wait for."""
    message = (
        f"{tasks} tasks of this worker that wait for tasks of their own hold {held_bytes >> 20} MB, over the limit of "
        f"{limit_bytes >> 20} MB for such tasks, and this one was stopped: let tasks hold less while they wait, let "
        "them nest less deeply, or give the executors more memory"
    )
    return Stop("memory", message, lease_id, index)


def spam(written: int, limit_bytes: int, lease_id: str, index: int) -> Stop:
    """The task wrote too much output."""
    message = (
        f"the task wrote {written >> 20} MB to standard output and error, over the limit of {limit_bytes >> 20} MB, "
        "and was stopped: write such amounts to a file"
    )
    return Stop("crashed", message, lease_id, index)


def descriptors(there: int, limit: int, lease_id: str, index: int) -> Stop:
    """The processes that the task started have room for too many descriptors in their tables."""
    message = (
        f"the processes that the task started have room for {there} open files, pipes and sockets, over the limit of "
        f"{limit} for one executor, and were stopped: start fewer processes, or close in them what they do not need"
    )
    return Stop("crashed", message, lease_id, index)


def garbage(what: str, lease_id: str, index: int) -> Stop:
    """The executor's channel to the agent brought data that only task code can have written."""
    message = (
        f"the task wrote to a file descriptor of its executor ({what}), which was stopped: write only to descriptors "
        "that the task itself opened"
    )
    return Stop("crashed", message, lease_id, index)
