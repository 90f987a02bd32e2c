"""What the tests of the JavaScript SDK run at a worker."""

import sys
import threading
from pathlib import Path
from typing import Any


def square(number: float) -> float:
    """A task of a map."""
    return number * number


def kind(value: Any) -> str:
    """What a value has become in Python."""
    return type(value).__name__


def call(*args: Any, **kwargs: Any) -> list[Any]:
    """How a function was called."""
    return [list(args), kwargs]


def odd_fails(number: int) -> int:
    """Half of the tasks raise."""
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def payload(size: int) -> bytes:
    """A large result."""
    return bytes([size % 251]) * size


def say(text: str) -> None:
    """Writes to both outputs."""
    sys.stdout.write(text)
    sys.stderr.write(text.upper())


def opaque() -> object:
    """A result that MessagePack does not hold."""
    return object()


def touch_and_wait(path: str) -> None:
    """A task that never ends, and says when it has begun."""
    Path(path).touch()
    threading.Event().wait()


def wait_for(path: str) -> str:
    """A task that ends once a file is there."""
    while not Path(path).exists():
        threading.Event().wait(0.01)
    return path
