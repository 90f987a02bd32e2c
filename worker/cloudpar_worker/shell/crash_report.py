"""Removes the executor's own frames from what Python writes about a crash."""

from typing import Final

_START: Final = "Fatal Python error: "
_FRAME: Final = '  File "'
_OWN_FOLDER: Final = "/cloudpar_worker/"
_OWN_FILE: Final = "<frozen runpy>"


def without_own_frames(text: str) -> str:
    r"""Remove the executor's own frames from a text, because they are the same in every crash.

    A text without a crash report stays as it is.

    Args:
        text: All that a crashed executor wrote to standard error, which includes the output of the task itself.

    >>> print(without_own_frames('Fatal Python error: Aborted\n  File "a.py", line 1 in f\n'
    ...     '  File "/usr/lib/cloudpar_worker/executor/runner.py", line 2 in serve\n'), end="")
    Fatal Python error: Aborted
      File "a.py", line 1 in f
    """
    before, start, report = text.rpartition(_START)
    if not start:
        return text
    # Task code may have written this text. A regular expression that tries several places for the folder's name would
    # take seconds for some lines, and all other executors would wait meanwhile. So this function searches each line
    # only once.
    *lines, rest = report.split("\n")
    return before + start + "\n".join([*(line for line in lines if not _is_own(line)), rest])


def _is_own(line: str) -> bool:
    if not line.startswith(_FRAME):
        return False
    file, _, position = line.removeprefix(_FRAME).partition('"')
    return position.startswith(", line ") and (file == _OWN_FILE or _OWN_FOLDER in file)
