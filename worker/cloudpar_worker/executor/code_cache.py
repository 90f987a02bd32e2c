"""Which functions an executor has: the same rule on both sides, so that the agent knows when to send the code along."""

from collections import OrderedDict
from typing import Final

CACHED_FUNCTIONS: Final = 16
CACHED_BYTES: Final = 128 * 1024 * 1024
"""Pickled code of the functions that one executor keeps, besides the last one, which may be larger alone.

What a function holds in memory is about as large as its pickle.
"""


class CodeCache:
    """The hashes of the functions that were used last, with the size of their code."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[str, int] = OrderedDict()
        self._bytes = 0

    def __contains__(self, code_hash: str) -> bool:
        return code_hash in self._sizes

    def use(self, code_hash: str, size: int) -> dict[str, int]:
        """A function is used. Returns which ones are dropped for it, with the sizes of their code."""
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
