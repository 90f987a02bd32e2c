"""Which errors the adapters leave as they are for callers. test_retries.py has those that they translate."""

import pytest
from botocore.exceptions import NoCredentialsError

from cloudpar_master.adapters.aws.errors import translate
from cloudpar_protocol.errors import NotFound

from .stubs import client_error


@pytest.mark.parametrize(
    "error", [client_error("AccessDenied", 403), NoCredentialsError(), NotFound("x"), ValueError("x")], ids=str
)
def test_other_errors_are_not_translated(error: Exception) -> None:
    assert translate(error) is error
