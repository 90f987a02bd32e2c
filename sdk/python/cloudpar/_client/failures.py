"""What did not work, from the wire to exceptions."""

import copy
from typing import Any

from cloudpar._formatting.tracebacks import with_source
from cloudpar._serialization import msgpack_data
from cloudpar._serialization.unpickling import loads
from cloudpar.errors import CloudparError, Gone, PackageFailed, RemoteTraceback, TaskError, TaskRaised
from cloudpar_protocol.errors import FAILURE_ERRORS, OUTCOME_ERRORS
from cloudpar_protocol.payloads import Codec, TaskResult


def package_error(state: str, reason: str | None, message: str | None) -> CloudparError:
    """Why a package ended without all of its results, or that it was deleted: the master calls that expired."""
    if state == "expired":
        return Gone(message or "the package has expired: the master deleted it")
    kind = FAILURE_ERRORS.get(reason or "", PackageFailed)
    error = kind(message or f"the package has {state}: {reason or 'no reason given'}")
    error.add_note(f"package {state}, reason: {reason}")
    return error


def task_error(result: TaskResult, codec: Codec) -> BaseException:
    """The exception that a task ended with: its own, or the one that says why it has no value."""
    error = _own(result) if result.outcome == "error" and codec == "pickle" else None
    if error is None:
        kind = OUTCOME_ERRORS.get(result.outcome, TaskError)
        error = kind(result.message or f"task {result.index} ended without a value: {result.outcome}")
    if result.traceback:
        error.__cause__ = RemoteTraceback(with_source(result.traceback))
    return error


def _own(result: TaskResult) -> BaseException | None:
    if result.data is None:
        return None
    try:
        error = loads(result.data)
    except Exception as reason:  # noqa: BLE001 - whatever the user's class does when it is rebuilt
        text = f"{result.message}; the exception itself cannot be rebuilt here: {type(reason).__name__}: {reason}"
        return TaskRaised(text)
    return error if isinstance(error, BaseException) else None


def copied(failure: CloudparError) -> CloudparError:
    """The failure of a package, as an exception of its own for one of the tasks that it leaves without a result."""
    error = copy.copy(failure)
    error.__cause__ = failure.__cause__
    if hasattr(failure, "__notes__"):
        error.__notes__ = list(failure.__notes__)  # copy.copy shares the list
    return error


def raisable(error: BaseException, number: int) -> BaseException:
    """What to raise for a task's exception where results are iterated over: StopIteration would end that in silence."""
    if not isinstance(error, StopIteration):
        return error
    mended = RuntimeError(f"task {number} raised StopIteration")  # as PEP 479 has it for generators
    mended.__cause__ = error
    vars(mended).update(vars(error))  # its notes, and which task it is
    return mended


def outcome(result: TaskResult, codec: Codec) -> tuple[Any, BaseException | None]:
    """What a task came to, by its package's codec: a value and None, or None and an exception."""
    if result.outcome != "ok":
        return None, task_error(result, codec)
    if result.data is None:
        return None, None
    try:
        return (loads if codec == "pickle" else msgpack_data.loads)(result.data), None
    except Exception as reason:  # noqa: BLE001 - whatever the user's class does when it is rebuilt
        error = TaskError(
            f"the value of task {result.index} cannot be rebuilt here: {type(reason).__name__}: {reason}; "
            "if a module is missing, install it on this side too"
        )
        error.__cause__ = reason
        return None, error
