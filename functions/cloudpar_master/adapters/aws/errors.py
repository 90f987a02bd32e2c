"""Recognizes the errors of AWS after which the same call may succeed later."""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError  # noqa: A004 - botocore's own

from cloudpar_protocol.errors import Unavailable

BUSY = frozenset({
    "InternalServerError", "InternalFailure", "KmsThrottled", "LimitExceededException", "OverLimit",
    "ProvisionedThroughputExceeded", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestThrottled", "ServiceUnavailable", "SlowDown", "Throttling", "ThrottlingError", "ThrottlingException",
    "TooManyRequestsException", "TransactionConflict", "TransactionConflictException",
    "TransactionInProgressException",
})  # fmt: skip
"""AWS's codes of errors after which the same call may succeed. Such a code is in the answer to a call, in a failed
entry of a batch, or in a reason why a transaction was cancelled."""


class Conflict(Exception):
    """Another process is writing the same row."""


def code(error: ClientError) -> str:
    """Return AWS's name of the error; "" if the answer has none."""
    return error.response.get("Error", {}).get("Code", "")


def is_passing(error: Exception) -> bool:
    """Whether the same call may succeed later. botocore repeats most calls several times before it raises the error."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return code(error) in BUSY or status >= 500
    return isinstance(error, (ConnectionError, HTTPClientError))


def busy(what: str) -> Unavailable:
    """Make the error that tells the caller to try again later."""
    return Unavailable(f"{what} is very busy: try again", retry_after_s=1.0)


def translate(error: Exception) -> Exception:
    """Return Unavailable for an error of AWS after which the call may succeed later, and any other error unchanged."""
    return busy("the master's storage") if is_passing(error) else error


@contextmanager
def translated() -> Iterator[None]:
    """Raise Unavailable in place of an error of AWS after which the call may succeed later."""
    try:
        yield
    except Exception as error:
        other = translate(error)
        if other is error:
            raise
        raise other from error
