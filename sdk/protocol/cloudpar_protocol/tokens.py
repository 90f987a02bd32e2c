"""Makes tokens, and recognizes the tokens that clients send only to a master that has proved itself.

A token that `new_token` makes starts with `cloudpar_` and ends with a checksum, so that a scanner for secrets and a
client recognise it. Over plain HTTP, a client sends such a token to no server that does not prove that it knows the
token; see `proofs`. Releases up to 0.2.0 made tokens without this form.
"""

import secrets
import string
import zlib
from typing import Final

PREFIX: Final = "cloudpar_"
_DIGITS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_DIGITS: Final = 43
"""This many random digits of base 62 have 256 random bits."""
_CHECKSUM_DIGITS: Final = 6
"""This many digits of base 62 can hold a CRC-32."""


def new_token() -> str:
    """Make a token.

    >>> token = new_token()
    >>> token.startswith("cloudpar_"), len(token), has_checksum(token)
    (True, 58, True)
    """
    start = PREFIX + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM_DIGITS))
    return start + _checksum(start)


def has_checksum(token: str) -> bool:
    """Whether a token has the form that `new_token` gives it.

    Raises:
        ValueError: The token starts or ends like a token with a checksum, but it is not whole, or has a typing error.

    >>> has_checksum("a token of release 0.2.0")
    False
    """
    digits = token[-_RANDOM_DIGITS - _CHECKSUM_DIGITS :]
    ends_well = len(digits) == _RANDOM_DIGITS + _CHECKSUM_DIGITS and digits.endswith(
        _checksum(PREFIX + digits[:_RANDOM_DIGITS])
    )
    # A token whose start is damaged must not count as one of an earlier release: over plain HTTP, a client would send
    # it to any server, and this server could guess the start.
    if not ends_well and not token.startswith(PREFIX):
        return False
    if not ends_well or token != PREFIX + digits:
        raise ValueError(f"the token is not whole, or has a typing error: copy it again, from {PREFIX} to its end")
    return True


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_DIGITS):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
