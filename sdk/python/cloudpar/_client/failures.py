"""Makes exceptions from the failed tasks and packages that the master reports."""

import copy
from typing import Any

from cloudpar._formatting.tracebacks import with_source
from cloudpar._serialization import msgpack_data
from cloudpar._serialization.unpickling import loads
from cloudpar.errors import CloudparError, Gone, PackageFailed, RemoteTraceback, TaskError, TaskRaised
from cloudpar_protocol.errors import FAILURE_ERRORS, OUTCOME_ERRORS
from cloudpar_protocol.payloads import Codec, TaskResult


def package_error(state: str, reason: str | None, message: str | None) -> CloudparError:
    """Return the exception for a package that ended without all results, or that was deleted (state "expired")."""
    if state == "expired":
        return Gone(message or "the package has expired: the master deleted it")
    kind = FAILURE_ERRORS.get(reason or "", PackageFailed)
    error = kind(message or f"the package has {state}: {reason or 'no reason given'}")
    error.add_note(f"package {state}, reason: {reason}")
    return error


def task_error(result: TaskResult, codec: Codec) -> BaseException:
    """Return the exception that a task raised, or an exception that says why the task has no value."""
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
    except Exception as reason:  # noqa: BLE001 - unpickling runs the user's code
        text = f"{result.message}; the exception itself cannot be rebuilt here: {type(reason).__name__}: {reason}"
        return TaskRaised(text)
    return error if isinstance(error, BaseException) else None


def copied(failure: CloudparError) -> CloudparError:
    """Copy a package's failure for one of its tasks, so that each exception has its own traceback and notes."""
    error = copy.copy(failure)
    error.__cause__ = failure.__cause__
    if hasattr(failure, "__notes__"):
        error.__notes__ = list(failure.__notes__)  # copy.copy shares the list
    return error


def raisable(error: BaseException, number: int) -> BaseException:
    """Return the exception to raise from an iterator of results, for the task with this number.

    This is `error` itself, unless it is a StopIteration, which would end the iteration silently. A RuntimeError then
    replaces it.
    """
    if not isinstance(error, StopIteration):
        return error
    replacement = RuntimeError(f"task {number} raised StopIteration")  # as PEP 479 does for generators
    replacement.__cause__ = error
    vars(replacement).update(vars(error))  # the notes of the error, and the attributes that name its task
    return replacement


def outcome(result: TaskResult, codec: Codec) -> tuple[Any, BaseException | None]:
    """Decode a task's result: return its value and None, or None and its exception.

    If the value cannot be decoded here, the exception is a TaskError with the reason.
    """
    if result.outcome != "ok":
        return None, task_error(result, codec)
    if result.data is None:
        return None, None
    try:
        return (loads if codec == "pickle" else msgpack_data.loads)(result.data), None
    except Exception as reason:  # noqa: BLE001 - unpickling runs the user's code
        error = TaskError(
            f"the value of task {result.index} cannot be rebuilt here: {type(reason).__name__}: {reason}; "
            "if a module is missing, install it on this side too"
        )
        error.__cause__ = reason
        return None, error
