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
    ├── MasterUnreachable           no answer at all
    ├── PackageFailed               the package ended without all results: quota, expiry, losses
    │   ├── PythonMismatch          no executor runs the client's Python version
    │   └── SealBroken              code, data or a result is not what was sealed
    ├── SerializationError          (also a TypeError) a function, argument or result cannot be serialized
    └── TaskError                   one task has no value
        ├── TaskRaised              its exception cannot be pickled; this has its text
        ├── TaskTimeout             (also a TimeoutError) it reached a time limit
        ├── TaskQuotaExceeded       the quota was used up while it ran
        ├── TaskCancelled           it was cancelled while queued or running
        ├── ExecutorCrashed         it ended its process (segfault, os._exit, a signal)
        ├── ExecutorOutOfMemory     it was stopped at the memory limit
        └── TaskLost                its worker was lost again and again

An exception of task code is not in this tree: the same exception is raised at the client, with the remote traceback as
its cause. If it cannot be pickled, or the task code is a reference, a TaskRaised is raised instead.
"""

from typing import ClassVar, Literal


class CloudparError(Exception):
    """Base class of all errors of this system. The text says what happened and what to do.

    Attributes:
        task_index: For an error of one task: the task's index from 0, in its map, or in the package of its future.
        package_id: For an error of one task: the task's package.
    """

    task_index: int | None = None
    package_id: str | None = None


class RequestError(CloudparError):
    """The master answered with an error.

    Attributes:
        code: The stable name on the wire.
        status: The HTTP status.
        retryable: Whether the same request may succeed later.
        retry_after_s: When to try again, if the master knows.
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
    """The request speaks a newer protocol than this master."""

    code, status = "unsupported_version", 400


class InvalidToken(RequestError):
    """The token is missing, unknown or revoked."""

    code, status = "invalid_token", 401


class QuotaExhausted(RequestError):
    """The account has no compute time left."""

    code, status = "quota_exhausted", 402


class Forbidden(RequestError):
    """The token is valid, but its role does not permit this call."""

    code, status = "forbidden", 403


class NotFound(RequestError):
    """Nothing of that name is visible to this token."""

    code, status = "not_found", 404


class IdempotencyConflict(RequestError):
    """The idempotency key was used before with another request."""

    code, status = "idempotency_conflict", 409


class Gone(RequestError):
    """What the request names has been deleted; the text says when and why."""

    code, status = "gone", 410


class TooLarge(RequestError):
    """The request exceeds a limit of `cloudpar_protocol.limits`."""

    code, status = "too_large", 413


class RateLimited(RequestError):
    """The account has too many requests or running packages; try again after `retry_after_s`."""

    code, status, retryable = "rate_limited", 429, True


class InternalError(RequestError):
    """A fault of the master. Nothing acknowledged is lost; the same request may be sent again."""

    code, status, retryable = "internal", 500, True


class Unavailable(RequestError):
    """The master cannot take the request now."""

    code, status, retryable = "unavailable", 503, True


class MasterUnreachable(CloudparError):
    """The endpoint does not answer."""


class PackageFailed(CloudparError):
    """The package ended without all of its results: no quota was left, it expired, lost tasks, or was cancelled."""


class PythonMismatch(PackageFailed):
    """Client and executor run different minor versions of Python."""


class SealBroken(PackageFailed):
    """Code, data or a result lacks its seal or does not match it, so it may have been changed. It was not unpickled."""


class SerializationError(CloudparError, TypeError):
    """A function, an argument or a result cannot be pickled, or (for a reference) cannot be sent as MessagePack."""


class TaskError(CloudparError):
    """One task ended without a value."""


class TaskRaised(TaskError):
    """The task's exception could not be pickled; this error has its text, and `__cause__` its remote traceback."""


class TaskTimeout(TaskError, TimeoutError):
    """The task reached its time limit and was stopped. The time used is charged."""


class TaskQuotaExceeded(TaskError):
    """The account's compute time was used up while the task ran, so it was stopped. The time used is charged."""


class TaskCancelled(TaskError):
    """The task was cancelled before it had a result."""


class ExecutorCrashed(TaskError):
    """The task ended its executor process."""


class ExecutorOutOfMemory(TaskError):
    """The task exceeded its executor's memory limit and was stopped."""


class TaskLost(TaskError):
    """Several workers in a row were lost while they ran this task."""


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
"""The error class for each outcome but "ok". "error" has a TaskRaised only if the task's exception was not pickled."""

FAILURE_ERRORS: dict[str, type[PackageFailed]] = {"python": PythonMismatch, "seal": SealBroken}
"""The error class for a failed package, by its reason. For any other reason it is a plain PackageFailed."""
