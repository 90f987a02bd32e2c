import re

import pytest

from cloudpar.cli import exit_codes
from cloudpar.errors import (
    BadRequest,
    ConfigurationError,
    Forbidden,
    Gone,
    InternalError,
    InvalidToken,
    MasterUnreachable,
    NotFound,
    PackageFailed,
    QuotaExhausted,
)
from cloudpar_protocol.errors import CloudparError


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (CloudparError, 1),
        (BadRequest, 1),
        (InternalError, 1),
        (PackageFailed, 1),
        (ConfigurationError, 2),
        (InvalidToken, 3),
        (Forbidden, 3),
        (MasterUnreachable, 4),
        (NotFound, 5),
        (Gone, 5),
        (QuotaExhausted, 6),
        (exit_codes.PortInUse, 7),
    ],
)
def test_each_error_has_its_exit_code(kind: type[CloudparError], code: int) -> None:
    assert exit_codes.exit_code(kind("text")) == code


def test_the_documented_exit_codes_are_the_actual_ones() -> None:
    documented = {int(number) for number in re.findall(r"^    (\d+)  ", exit_codes.__doc__ or "", re.MULTILINE)}
    assert documented == {
        value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)
    }
