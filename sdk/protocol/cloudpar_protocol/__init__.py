"""What client, master and workers say to each other. Imports nothing of them.

Read `routes` first: the table of all calls. `codec` turns messages into bytes, `errors` is the tree of everything
that can go wrong, `limits` the figures, `payloads` what tasks carry.
"""

from .version import __version__

__all__ = ["__version__"]
