"""The state of one package, in one small record that one writer at a time replaces."""

from .life import BLOB_BYTES, HOST_BYTES, LACKS_BYTES, MESSAGE_BYTES, SET_ASIDE, Life, State, cut
from .pace import FLEET, Member, Pace, number_of
from .package import HEAD_BYTES, SCHEMA, Head, Spec, size_of
from .quota import GIVEN_BACK, Quota
from .tasks import CANCELLED_RANGES, ENTRIES, FAILED_RANGES, OpenRange, Tasks

__all__ = [
    "BLOB_BYTES",
    "CANCELLED_RANGES",
    "ENTRIES",
    "FAILED_RANGES",
    "FLEET",
    "GIVEN_BACK",
    "HEAD_BYTES",
    "HOST_BYTES",
    "LACKS_BYTES",
    "MESSAGE_BYTES",
    "SCHEMA",
    "SET_ASIDE",
    "Head",
    "Life",
    "Member",
    "OpenRange",
    "Pace",
    "Quota",
    "Spec",
    "State",
    "Tasks",
    "cut",
    "number_of",
    "size_of",
    "stored",
]
