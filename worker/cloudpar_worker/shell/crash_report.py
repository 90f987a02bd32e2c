"""Removes the executor's own frames from what Python writes about a crash."""

import re
from typing import Final

_START: Final = "Fatal Python error: "
_OWN_FRAME: Final = re.compile(r'^  File "(?:[^"\n]*/cloudpar_worker/[^"\n]*|<frozen runpy>)", line .*\n', re.MULTILINE)


def without_own_frames(text: str) -> str:
    r"""Remove the executor's own frames, which are the same in every crash, from a text.

    A text without a crash report stays as it is.

    Args:
        text: What an executor that has crashed wrote to standard error, with what the task itself wrote before.

    >>> print(without_own_frames('Fatal Python error: Aborted\n  File "a.py", line 1 in f\n'
    ...     '  File "/usr/lib/cloudpar_worker/executor/runner.py", line 2 in serve\n'), end="")
    Fatal Python error: Aborted
      File "a.py", line 1 in f
    """
    before, start, report = text.rpartition(_START)
    return before + start + _OWN_FRAME.sub("", report) if start else text
