"""The pool's own exceptions. All except `RemoteTraceback` are subclasses of `CloudparError`.

If task code raises an exception, the client raises a copy of this exception, whose cause is a `RemoteTraceback`. If the
exception cannot be pickled or unpickled, or the task code is a reference, the client raises a `TaskRaised` instead.
"""

from cloudpar_protocol.errors import (
    BadRequest,
    CloudparError,
    ExecutorCrashed,
    ExecutorOutOfMemory,
    Forbidden,
    Gone,
    IdempotencyConflict,
    InternalError,
    InvalidToken,
    MasterUnreachable,
    NotFound,
    PackageFailed,
    PythonMismatch,
    QuotaExhausted,
    RateLimited,
    RequestError,
    SealBroken,
    SerializationError,
    TaskCancelled,
    TaskError,
    TaskLost,
    TaskQuotaExceeded,
    TaskRaised,
    TaskTimeout,
    TooLarge,
    Unavailable,
    UnsupportedVersion,
)

__all__ = [
    "BadRequest",
    "CloudparError",
    "ConfigurationError",
    "ExecutorCrashed",
    "ExecutorOutOfMemory",
    "FolderUnwritable",
    "Forbidden",
    "Gone",
    "IdempotencyConflict",
    "InternalError",
    "InvalidToken",
    "LocalClusterFailed",
    "MasterUnreachable",
    "NotFound",
    "PackageFailed",
    "PythonMismatch",
    "QuotaExhausted",
    "RateLimited",
    "RemoteTraceback",
    "RequestError",
    "SealBroken",
    "SerializationError",
    "SideEffectError",
    "TaskCancelled",
    "TaskError",
    "TaskLost",
    "TaskQuotaExceeded",
    "TaskRaised",
    "TaskTimeout",
    "TooLarge",
    "Unavailable",
    "UnsupportedVersion",
]


class ConfigurationError(CloudparError):
    """An endpoint, a token, the profile file or a setting is missing, is not valid, or contradicts another setting."""


class LocalClusterFailed(CloudparError):
    """The pool's own master or agent ended several times within seconds, or cannot be started again.

    The error's text ends with the last lines that the ended process wrote to its log.
    """


class FolderUnwritable(CloudparError, OSError):
    """A pool's own master and worker cannot write their temporary folder, for example because the disk is full.

    Attributes:
        errno: The error number of the operating system, such as errno.ENOSPC.
    """


class SideEffectError(CloudparError, RuntimeError):
    """A body of `parallel_for` wrote something that cannot be copied back, so none of its writes was copied back.

    For example, the body changed a set or the length of a list, or it wrote a value that cannot be pickled. Or two
    tasks wrote the same element, or this process changed an object while tasks wrote to it.

    Attributes:
        variable: The variable that was written, as the body's source names it (`result[3]`, `obj.total`).
        index: The index with which the body was called; the larger index if two tasks wrote the same element.
    """

    def __init__(self, message: str, *, variable: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.variable = variable
        self.index = index


class RemoteTraceback(Exception):
    """The text of a traceback in an executor.

    It is the `__cause__` of the exception that the client raises for the task.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        # The text starts on a new line, so that Python's traceback shows it as a separate block.
        return f"\n{self.text.rstrip()}"


for _name in __all__:  # so that tracebacks and pickles name the module from which users import the classes
    globals()[_name].__module__ = __name__
