"""Messages between an agent and a zygote, over one socket pair."""

import struct
from typing import Final

MESSAGE: Final = struct.Struct("<cqq")
"""Operation, executor id, and a figure: its pid (forked), wait status (died), errno (failed), bytes (weighed)."""
SPAWN, KILL, MEASURE, FORKED, DIED, FAILED, MEASURED = b"S", b"K", b"W", b"F", b"D", b"E", b"B"
SPAWN_FDS: Final = 4
"""An executor's channel, standard output, standard error, recall page."""
UNKNOWN: Final = -1
"""The figure of MEASURED when the memory could not be measured."""
