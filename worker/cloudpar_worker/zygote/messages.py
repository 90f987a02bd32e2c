"""Messages between an agent and a zygote, over one socket pair."""

import struct
from typing import Final

MESSAGE: Final = struct.Struct("<cqq")
"""An operation, an executor id, a figure: process id (FORKED), wait status (DIED), errno (FAILED), bytes (MEASURED). In
messages to the zygote the figure is 0.
"""
SPAWN, KILL, MEASURE, WEIGH, FORKED, DIED, FAILED, MEASURED = b"S", b"K", b"W", b"G", b"F", b"D", b"E", b"B"
SPAWN_FDS: Final = 4
"""How many descriptors a SPAWN carries: channel, standard output, standard error, recall page, in this order."""
UNKNOWN: Final = -1
"""The figure of MEASURED if the measurement failed."""
