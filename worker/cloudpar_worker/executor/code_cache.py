"""The rule that says which functions an executor keeps.

The agent and the executor apply the same rule, so the agent knows which code it need not send again.
"""

from collections import OrderedDict
from typing import Final

CACHED_FUNCTIONS: Final = 16
"""How many functions an executor keeps; a further function replaces the function that was used longest ago."""
CACHED_BYTES: Final = 128 * 1024 * 1024
"""The most bytes of code that all functions of an executor may have together. Above this number, the executor drops the
functions that it used longest ago. The function that it used last always stays.

A function takes about as much memory as its pickle.
"""


class CodeCache:
    """The hashes of the functions used last, with the sizes of their code."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0

    def __contains__(self, code_hash: str) -> bool:
        return code_hash in self._sizes

    def use(self, code_hash: str, size: int) -> dict[str, int]:
        """Record a use of a function; return the hashes of dropped functions, with the sizes of their code."""
        if code_hash not in self._sizes:
            self._sizes[code_hash] = size
            self._bytes += size
        self._sizes.move_to_end(code_hash)
        dropped = {}
        while len(self._sizes) > CACHED_FUNCTIONS or (self._bytes > CACHED_BYTES and len(self._sizes) > 1):
            oldest, oldest_size = self._sizes.popitem(last=False)
            self._bytes -= oldest_size
            dropped[oldest] = oldest_size
        return dropped
