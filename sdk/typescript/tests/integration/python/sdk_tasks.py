"""The functions that the JavaScript SDK's tests run at a worker."""

import sys
import threading
from pathlib import Path
from typing import Any


def square(number: float) -> float:
    """Return a value of a map."""
    return number * number


def kind(value: Any) -> str:
    """Describe a value by its Python type."""
    return type(value).__name__


def call(*args: Any, **kwargs: Any) -> list[Any]:
    """Return the arguments of the call."""
    return [list(args), kwargs]


def odd_fails(number: int) -> int:
    """Raise for every other number."""
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def payload(size: int) -> bytes:
    """Return a large result."""
    return bytes([size % 251]) * size


def say(text: str) -> None:
    """Write to standard output and error."""
    sys.stdout.write(text)
    sys.stderr.write(text.upper())


def opaque() -> object:
    """Return a value that MessagePack does not hold."""
    return object()


def touch_and_wait(path: str) -> None:
    """Run without end, after reporting the start."""
    Path(path).touch()
    threading.Event().wait()


def wait_for(path: str) -> str:
    """Wait until a file exists."""
    while not Path(path).exists():
        threading.Event().wait(0.01)
    return path
