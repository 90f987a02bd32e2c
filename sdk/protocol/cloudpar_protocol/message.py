"""What all requests and replies have in common."""

from msgspec import Struct

from .limits import PROTOCOL_VERSION


class Message(Struct, frozen=True, kw_only=True):
    """A request or a reply. `v` is the protocol version of its sender; a newer one than this side's is refused."""

    v: int = PROTOCOL_VERSION
