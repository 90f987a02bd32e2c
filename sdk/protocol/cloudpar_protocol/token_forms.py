"""The forms of tokens, by which clients and masters recognize a token that is damaged or that no release makes."""

import re
import string
import zlib
from typing import Final

PREFIX: Final = "cloudpar_"
DIGITS: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_DIGITS: Final = 43
"""The number of random digits of a token: 43 digits in base 62 have 256 random bits."""
CHECKSUM_DIGITS: Final = 6
"""The number of digits of a token's checksum: 6 digits in base 62 can hold a CRC-32."""
_EARLIER: Final = re.compile(r"[\w-]{43}", re.ASCII)
"""The form of the tokens that earlier releases made for accounts: 256 random bits in base 64."""


def has_checksum(token: str) -> bool:
    """Whether a token has the form that `new_token` gives it.

    Raises:
        ValueError: The token starts or ends like a token with a checksum, but it is not whole, or has a typing error.

    >>> has_checksum("a token of release 0.2.0")
    False
    """
    digits = token[-RANDOM_DIGITS - CHECKSUM_DIGITS :]
    ends_well = len(digits) == RANDOM_DIGITS + CHECKSUM_DIGITS and digits.endswith(
        checksum(PREFIX + digits[:RANDOM_DIGITS])
    )
    # A token whose start is damaged must not count as one of an earlier release: over plain HTTP, a client would send
    # it to any server, and this server could guess the start.
    if not ends_well and not token.startswith(PREFIX):
        return False
    if not ends_well or token != PREFIX + digits:
        raise ValueError(f"the token is not whole, or has a typing error: copy it again, from {PREFIX} to its end")
    return True


def is_made(token: str) -> bool:
    """Whether a token has a form in which a command of this or an earlier release makes tokens of accounts.

    >>> is_made("x" * 43), is_made("guess")
    (True, False)
    """
    try:
        return has_checksum(token) or _EARLIER.fullmatch(token) is not None
    except ValueError:
        return False


def checksum(text: str) -> str:
    """Return the checksum of a token. `text` is the token without its checksum."""
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_DIGITS):
        number, digit = divmod(number, len(DIGITS))
        digits = DIGITS[digit] + digits
    return digits
