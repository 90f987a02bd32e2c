"""A page that agent and executor share: how the agent takes back tasks while the executor is deep in one.

The executor counts its tasks from 0. Before each it announces the count, then looks whether it is recalled. The agent
writes the recalled counts, waits until that must be visible, and then looks at what is announced. So either the
executor saw the recall, or the agent sees that the task has begun. Looking costs the executor no system call.
"""

import mmap
import os
from typing import Final

from .anonymous_file import anonymous_file

_WORDS: Final = 3
_STARTED, _FIRST, _END = range(_WORDS)
_NEVER: Final = 2**63


def open_page(folder: str | None = None) -> int:
    """A descriptor of a new page."""
    descriptor = anonymous_file("recall", folder)
    os.ftruncate(descriptor, 8 * _WORDS)
    return descriptor


class RecallPage:
    """One side's view of the page."""

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, 8 * _WORDS)
        self.words = memoryview(self._page).cast("Q")

    @property
    def started(self) -> int:
        """How many tasks the executor has begun, recalled ones that it passed over included."""
        return self.words[_STARTED]

    def recall(self, first: int, end: int) -> None:
        """The executor shall not begin the tasks [first, end), by its count."""
        words = self.words
        words[_FIRST] = _NEVER  # at no moment may the page name tasks that are not meant
        words[_END] = end
        words[_FIRST] = first

    def close(self) -> None:
        """Let go of the page."""
        self.words.release()
        self._page.close()
