"""The tree of all errors, on both sides of the wire.

    CloudparError
    ├── RequestError                the master answered with an error
    │   ├── BadRequest              400 bad_request
    │   ├── UnsupportedVersion      400 unsupported_version
    │   ├── InvalidToken            401 invalid_token
    │   ├── QuotaExhausted          402 quota_exhausted
    │   ├── Forbidden               403 forbidden
    │   ├── NotFound                404 not_found
    │   ├── IdempotencyConflict     409 idempotency_conflict
    │   ├── Gone                    410 gone
    │   ├── TooLarge                413 too_large
    │   ├── RateLimited             429 rate_limited          (retryable)
    │   ├── InternalError           500 internal              (retryable)
    │   └── Unavailable             503 unavailable           (retryable)
    ├── MasterUnreachable           no master answers in time
    ├── PackageFailed               the package ended without all of its results; the text says why
    │   ├── PythonMismatch          no worker runs the client's Python version
    │   └── SealBroken              code, data or a result is not what was sealed
    ├── SerializationError          (also a TypeError) a function, argument or result cannot be serialized
    └── TaskError                   one task has no value
        ├── TaskRaised              its exception did not arrive; this error has the text
        ├── TaskTimeout             (also a TimeoutError) it reached a time limit
        ├── TaskQuotaExceeded       the quota was used up while it ran
        ├── TaskCancelled           it was cancelled while queued or running
        ├── ExecutorCrashed         its process ended (segfault, os._exit, a signal)
        ├── ExecutorOutOfMemory     it was stopped at the memory limit
        └── TaskLost                its worker was lost again and again

An exception of task code is not in this tree: the same exception is raised at the client, with the remote traceback as
its cause. If it cannot be pickled or unpickled, or the task code is a reference, a TaskRaised is raised instead.
"""

from typing import ClassVar, Literal


class CloudparError(Exception):
    """Base class of all errors of this system. The text says what happened and what to do.

    Attributes:
        task_index: The index of the task, from 0, if this is the error of one task; otherwise None. For a task of a map
            it is the index in the map, and for a task with a future the index in the package.
        package_id: The package of the task, if this is the error of one task; otherwise None.
    """

    task_index: int | None = None
    package_id: str | None = None


class RequestError(CloudparError):
    """The master, or a blob store, answered with an error.

    Attributes:
        code: The stable name of the error in answers.
        status: The HTTP status with which a master sends this error.
        retryable: Whether the same request may succeed later.
        retry_after_s: The seconds after which to try again; None if the answer does not say it.
    """

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class BadRequest(RequestError):
    """The request is malformed or contradicts itself."""

    code, status = "bad_request", 400


class UnsupportedVersion(RequestError):
    """The message has a newer protocol version than its receiver."""

    code, status = "unsupported_version", 400


class InvalidToken(RequestError):
    """The token is missing, unknown or revoked."""

    code, status = "invalid_token", 401


class QuotaExhausted(RequestError):
    """The account has no compute time left."""

    code, status = "quota_exhausted", 402


class Forbidden(RequestError):
    """The token's role does not permit this call, a payload is another account's, or a link is not valid."""

    code, status = "forbidden", 403


class NotFound(RequestError):
    """The thing that the request names does not exist, or this token may not see it."""

    code, status = "not_found", 404


class IdempotencyConflict(RequestError):
    """The idempotency key, account name, token or blob key is already in use for something else."""

    code, status = "idempotency_conflict", 409


class Gone(RequestError):
    """The package, account or payload that the request names was deleted or revoked; the text says why."""

    code, status = "gone", 410


class TooLarge(RequestError):
    """The request exceeds a limit of `cloudpar_protocol.limits`, or of the account; the text names the limit."""

    code, status = "too_large", 413


class RateLimited(RequestError):
    """The account exceeds a limit on requests, connections, running packages or stored bytes; wait `retry_after_s`."""

    code, status, retryable = "rate_limited", 429, True


class InternalError(RequestError):
    """The master has a fault. Nothing that it has acknowledged is lost, and the same request may be sent again."""

    code, status, retryable = "internal", 500, True


class Unavailable(RequestError):
    """The master cannot take the request now."""

    code, status, retryable = "unavailable", 503, True


class MasterUnreachable(CloudparError):
    """The master or a blob store does not answer in time, or another program answers at its address."""


class PackageFailed(CloudparError):
    """The package ended without all of its results; the text of this error says why.

    For example, the quota was used up, the package ran for longer than it may, or another client cancelled it.
    """


class PythonMismatch(PackageFailed):
    """No worker runs the client's minor version of Python, so the package failed."""


class SealBroken(PackageFailed):
    """Code, data or a result lacks its seal or does not match the seal, so it may have been changed.

    The client or worker that found this did not unpickle it.
    """


class SerializationError(CloudparError, TypeError):
    """A function, an argument or a result cannot be pickled, or (for a reference) cannot be sent as MessagePack.

    A task whose result is larger than BLOB_BYTES also ends with this error.
    """


class TaskError(CloudparError):
    """One task ended without a value."""


class TaskRaised(TaskError):
    """The task raised an exception that could not be pickled or unpickled, or its task code is a reference.

    This error has the exception's text, and its `__cause__` has the remote traceback.
    """


class TaskTimeout(TaskError, TimeoutError):
    """The task reached its time limit and was stopped. The time used is charged."""


class TaskQuotaExceeded(TaskError):
    """The account's compute time was used up while the task ran, so the task was stopped. The time used is charged."""


class TaskCancelled(TaskError):
    """The task was cancelled before it had a result."""


class ExecutorCrashed(TaskError):
    """The task's executor ended while the task ran, or the worker stopped it because of the task's output.

    If a SIGKILL that the worker did not send ends the executor, the task runs again. When this happens for the third
    time, the task ends with this error.
    """


class ExecutorOutOfMemory(TaskError):
    """The task exceeded its executor's memory limit and was stopped.

    A task may also be stopped while it waits for tasks that it started, if all tasks of its worker that wait in this
    way together hold too much memory.
    """


class TaskLost(TaskError):
    """Several workers in a row were lost while they had this task, or its large result could not be uploaded."""


REQUEST_ERRORS: dict[str, type[RequestError]] = {kind.code: kind for kind in RequestError.__subclasses__()}
"""The error class for each code on the wire."""

Outcome = Literal["ok", "error", "timeout", "quota", "cancelled", "crashed", "memory", "lost", "unpicklable"]
"""How a task ended, in one word. Only "ok" has a value; OUTCOME_ERRORS has an exception for each of the others."""

OUTCOME_ERRORS: dict[str, type[CloudparError]] = {
    "error": TaskRaised,
    "timeout": TaskTimeout,
    "quota": TaskQuotaExceeded,
    "cancelled": TaskCancelled,
    "crashed": ExecutorCrashed,
    "memory": ExecutorOutOfMemory,
    "lost": TaskLost,
    "unpicklable": SerializationError,
}
"""The error class for each outcome but "ok". For "error" the task's own exception is raised, or a TaskRaised if that
exception did not arrive."""

FAILURE_ERRORS: dict[str, type[PackageFailed]] = {"python": PythonMismatch, "seal": SealBroken}
"""The error class for a failed package, by its reason. For any other reason the error is a plain PackageFailed."""
