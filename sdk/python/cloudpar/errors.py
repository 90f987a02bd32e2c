"""The pool's own exceptions. They form one tree of classes, which `cloudpar_protocol.errors` draws.

An exception that task code raises is not in this tree: the client raises the same exception, and its cause is a
`RemoteTraceback`.
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
    """Endpoint, token and profile do not fit together. The text says which is missing and where it was looked up."""


class LocalClusterFailed(CloudparError):
    """The master or the agent that the pool started keeps crashing; the text ends with its last lines of output."""


class FolderUnwritable(CloudparError, OSError):
    """The temporary folder of a pool's own master and worker cannot be written, for example because the disk is full.

    Attributes:
        errno: The error number of the operating system, such as errno.ENOSPC.
    """


class SideEffectError(CloudparError, RuntimeError):
    """A body of `parallel_for` changed something that cannot be copied back. Nothing in this process has changed.

    Either the object cannot be changed from outside, or two tasks changed the same element.

    Attributes:
        variable: What was changed, as the body's source names it (`result[3]`, `obj.total`).
        index: The index of the task that changed it.
    """

    def __init__(self, message: str, *, variable: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.variable = variable
        self.index = index


class RemoteTraceback(Exception):
    """The text of a traceback in an executor. It is the `__cause__` of the exception that is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        # Starts on a new line, so that Python's traceback shows the text as a block of its own.
        return f"\n{self.text.rstrip()}"


for _name in __all__:  # tracebacks and pickles name the module from which users import the classes
    globals()[_name].__module__ = __name__
