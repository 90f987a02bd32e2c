"""The recall page: shared memory by which the agent takes back queued tasks while the executor runs another task.

The executor counts its tasks from 0. Before each task it first writes how many tasks it has started or skipped,
including this one. Then it checks whether the number of this task is recalled. The agent first writes the recalled
numbers, waits until the executor must see them, and then reads what the executor wrote. Each side writes before it
reads. So either the executor sees the recall, or the agent sees that the task has started, or both. Without this order
a task could run twice. The executor needs no system call for its check.
"""

import mmap
import os
from typing import Final

from .anonymous_file import anonymous_file

_WORDS: Final = 3
_STARTED, _FIRST, _END = range(_WORDS)
_NEVER: Final = 2**63


def open_page(folder: str | None = None) -> int:
    """Open a new page; return its descriptor. `folder` is as in `anonymous_file`."""
    descriptor = anonymous_file("recall", folder)
    os.ftruncate(descriptor, 8 * _WORDS)
    return descriptor


class RecallPage:
    """Access to a recall page, by the agent or by the executor.

    Attributes:
        words: The page as three numbers: how many tasks the executor has started or skipped, the number of the first
            recalled task, and the number after the last recalled task.
    """

    def __init__(self, descriptor: int) -> None:
        self._page = mmap.mmap(descriptor, 8 * _WORDS)
        self.words = memoryview(self._page).cast("Q")

    @property
    def started(self) -> int:
        """The number of tasks that the executor has started or skipped."""
        return self.words[_STARTED]

    def recall(self, first: int, end: int) -> None:
        """Tell the executor to skip the tasks [first, end), numbered as the executor counts them."""
        words = self.words
        # The executor may read between two of these writes. The numbers must never name a task that is not recalled.
        words[_FIRST] = _NEVER
        words[_END] = end
        words[_FIRST] = first

    def close(self) -> None:
        """Release the page."""
        self.words.release()
        self._page.close()
