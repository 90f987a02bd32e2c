"""Tokens: how they are made, and which of them are sent only to a master that has proved itself.

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
"""So many digits of base 62 have 256 random bits."""
_CHECKSUM_DIGITS: Final = 6
"""So many digits of base 62 hold a CRC-32."""


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
        ValueError: It starts as such a token, and the checksum at its end does not match.

    >>> has_checksum("a token of release 0.2.0")
    False
    """
    if not token.startswith(PREFIX):
        return False
    start, end = token[:-_CHECKSUM_DIGITS], token[-_CHECKSUM_DIGITS:]
    if len(token) != len(PREFIX) + _RANDOM_DIGITS + _CHECKSUM_DIGITS or end != _checksum(start):
        raise ValueError(f"the token that starts with {PREFIX} is not whole, or has a typing error: copy it again")
    return True


def _checksum(text: str) -> str:
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(_CHECKSUM_DIGITS):
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits
