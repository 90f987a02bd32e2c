"""Shows at the client what tasks print."""

import logging
import sys
from collections.abc import Callable
from typing import TextIO

from cloudpar._arguments.pool_options import Output
from cloudpar_protocol.payloads import TaskResult

log = logging.getLogger("cloudpar")


def shower(output: Output) -> Callable[[TaskResult], None] | None:
    """Return the function that gets a task's result and shows what the task printed; None if output is dropped."""
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
    if text and stream is not None:  # there is no stream under pythonw or with a closed terminal
        stream.write("".join(f"[{index}] {line}\n" for line in text.splitlines()))
        stream.flush()
