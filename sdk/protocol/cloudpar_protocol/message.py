"""The base class of all requests and replies."""

from msgspec import Struct

from .limits import PROTOCOL_VERSION


class Message(Struct, frozen=True, kw_only=True):
    """A request or a reply. `v` is the protocol version of its sender; the receiver refuses a version above its own."""

    v: int = PROTOCOL_VERSION
