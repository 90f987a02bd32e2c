"""Messages between an agent and a zygote, over one socket pair."""

import struct
from typing import Final

MESSAGE: Final = struct.Struct("<cqq")
"""A message is an operation, an executor id, and a figure. The figure is a process id (FORKED), a wait status (DIED),
an errno (FAILED), or a number of bytes (MEASURED). In messages to the zygote it is 0.
"""
SPAWN, KILL, MEASURE, FORKED, DIED, FAILED, MEASURED = b"S", b"K", b"W", b"F", b"D", b"E", b"B"
WEIGH, LIGHTEN, RESTORE = b"G", b"L", b"R"
"""Three requests to weigh an executor (see cpu_share). LIGHTEN first gives the executor the lowest weight, and RESTORE
its usual weight.
"""
WEIGHTS: Final = frozenset({WEIGH, LIGHTEN, RESTORE})
SPAWN_FDS: Final = 5
"""A SPAWN message carries at most this many descriptors: channel, standard output, standard error, recall page and, if
the worker gives tasks credentials, the credentials page, in this order.
"""
UNKNOWN: Final = -1
"""The figure of a MEASURED message if the measurement failed."""
