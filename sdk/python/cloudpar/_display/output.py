"""What tasks print, shown at the client."""

import logging
import sys
from collections.abc import Callable
from typing import Literal, TextIO

from cloudpar_protocol.brief import brief
from cloudpar_protocol.payloads import TaskResult

Output = Literal["print"] | Callable[[int, str, str], None] | None
"""What to do with what tasks print: print it, call f(index, stdout, stderr), or drop it."""

log = logging.getLogger("cloudpar")


def check_output(output: Output) -> Output:
    """What a caller gives as `output=`.

    Raises:
        TypeError: It is something else.
    """
    given: object = output
    if given is not None and not callable(given) and not (isinstance(given, str) and given == "print"):
        raise TypeError(f'output={brief(given)}: give "print", None, or a function of (index, stdout, stderr)')
    return output


def shower(output: Output) -> Callable[[TaskResult], None] | None:
    """What to call with a task's result that has output."""
    if output is None:
        return None
    if not callable(output):
        return _print
    call = output

    def show(result: TaskResult) -> None:
        try:
            call(result.index, result.stdout or "", result.stderr or "")
        except Exception:
            log.exception("cloudpar: the function given as output= failed")

    return show


def _print(result: TaskResult) -> None:
    _write(sys.stdout, result.index, result.stdout)
    _write(sys.stderr, result.index, result.stderr)


def _write(stream: TextIO | None, index: int, text: str | None) -> None:
    if text and stream is not None:  # there may be no stream, under pythonw or a closed terminal
        stream.write("".join(f"[{index}] {line}\n" for line in text.splitlines()))
        stream.flush()
