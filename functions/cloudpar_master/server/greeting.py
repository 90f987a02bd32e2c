import msgspec
from msgspec import Struct

from cloudpar_master.core.policy import Policy


class Greeting(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a parent says to a master on its standard input: one line of JSON. A token that is empty is made or kept."""

    user_token: str = ""
    worker_token: str = ""
    admin_token: str = ""
    settings: Policy = Policy()


def parse(line: bytes) -> Greeting:
    """Read the line.

    Raises:
        ValueError: It is no such line; the text names the field.

    >>> parse(b'{"settings": {"lease_s": 2.0}}').settings.lease_s
    2.0
    """
    try:
        return msgspec.json.decode(line, type=Greeting)
    except msgspec.DecodeError as error:
        known = ", ".join(Policy.__struct_fields__)
        raise ValueError(
            f"the line on standard input is not what a master expects: {error}; the names of `--set` are {known}"
        ) from None
