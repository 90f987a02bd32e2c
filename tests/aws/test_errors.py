"""How the adapters translate AWS's errors for callers."""

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError, ReadTimeoutError

from cloudpar_master.adapters.aws.errors import translate
from cloudpar_protocol.errors import NotFound, Unavailable

from .stubs import client_error


@pytest.mark.parametrize(
    "error",
    [
        client_error("ThrottlingException"),
        client_error("ProvisionedThroughputExceededException"),
        client_error("SlowDown", 503),
        client_error("WhoKnows", 500),
        EndpointConnectionError(endpoint_url="http://127.0.0.1:9"),
        ReadTimeoutError(endpoint_url="http://127.0.0.1:9"),
    ],
    ids=str,
)
def test_temporary_errors_are_retryable(error: Exception) -> None:
    assert isinstance(translate(error), Unavailable)


@pytest.mark.parametrize(
    "error", [client_error("AccessDenied", 403), NoCredentialsError(), NotFound("x"), ValueError("x")], ids=str
)
def test_other_errors_are_not_translated(error: Exception) -> None:
    assert translate(error) is error
