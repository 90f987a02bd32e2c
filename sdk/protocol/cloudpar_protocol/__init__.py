"""The messages between clients, the master and workers. This package imports none of these three.

Read `routes` first: the table of all calls. `codec` turns messages into bytes, `errors` is the tree of all errors,
`limits` has the limits, and `payloads` has the types of task code, task data and results.
"""

from .version import __version__

__all__ = ["__version__"]
