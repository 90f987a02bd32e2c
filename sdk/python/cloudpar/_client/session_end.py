"""The end of a session: whether it has come, and why."""

from types import TracebackType

from cloudpar._formatting.tracebacks import ShortTracebacks
from cloudpar.errors import CloudparError
from cloudpar_protocol.transport.retries import Stopped


class SessionEnd(ShortTracebacks):
    """Whether a session has ended, and why. It is also a context for the session's requests.

    A request that ends because the session has ended raises `Stopped`. If this error leaves the context, the context
    raises the reason for the end instead. As in `ShortTracebacks`, other errors of the pool lose their frames inside
    the context.

    Attributes:
        reached: Whether the session has ended, so that it sends no more requests.
        reason: The error that ended the session; None if there is no such error.
    """

    def __init__(self) -> None:
        self.reached = False
        self.reason: CloudparError | None = None

    def check(self) -> None:
        """Raise the error that ended the session, if there is such an error."""
        if self.reason is not None:
            raise self.reason

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, Stopped):
            raise self.reason or CloudparError("the pool was shut down meanwhile") from None
        super().__exit__(kind, error, traceback)
