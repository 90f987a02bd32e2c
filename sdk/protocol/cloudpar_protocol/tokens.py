"""Makes tokens, and recognizes the tokens that clients send only to a master that has proved itself.

A token that `new_token` makes starts with `cloudpar_` and ends with a checksum, so that a scanner for secrets and a
client recognize it. Over plain HTTP, a client sends such a token only to a server that has proved that it knows the
token; see `proofs`. Releases up to 0.2.0 made tokens without this form.
"""

import secrets

from .token_forms import DIGITS, PREFIX, RANDOM_DIGITS, checksum, has_checksum

__all__ = ["PREFIX", "has_checksum", "new_token"]


def new_token() -> str:
    """Make a token.

    >>> token = new_token()
    >>> token.startswith("cloudpar_"), len(token), has_checksum(token)
    (True, 58, True)
    """
    start = PREFIX + "".join(secrets.choice(DIGITS) for _ in range(RANDOM_DIGITS))
    return start + checksum(start)
