"""Everything that can go wrong, in one tree; see `cloudpar_protocol.errors` for the drawing.

An exception that task code raises is not in this tree: it comes back as itself, a `RemoteTraceback` as its cause.
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
    """Endpoint, token and profile do not fit together; the text says which is missing, and where it was looked for."""


class LocalClusterFailed(CloudparError):
    """The master or the agent that the pool itself started keeps dying by itself; its last lines end the text."""


class FolderUnwritable(CloudparError, OSError):
    """The temporary folder of a pool's own master and worker cannot be written, such as on a full disk.

    Attributes:
        errno: The number of the system's error, such as errno.ENOSPC.
    """


class SideEffectError(CloudparError, RuntimeError):
    """A body of `parallel_for` changed what cannot come home, or what another task changed too; here nothing changed.

    Attributes:
        variable: What was changed, as the body's source names it (`result[3]`, `obj.total`).
        index: The task that changed it.
    """

    def __init__(self, message: str, *, variable: str = "", index: int | None = None) -> None:
        super().__init__(message)
        self.variable = variable
        self.index = index


class RemoteTraceback(Exception):
    """What a remote exception's traceback looked like in its executor: the `__cause__` of that exception here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        # On lines of its own in the traceback of the exception here, which leaves a line free below it.
        return f"\n{self.text.rstrip()}"
