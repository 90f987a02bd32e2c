"""Work in steps. A generator does the work and yields between its steps, so that a server can serve other requests.

The embedded master has one thread: a request that lists a thousand packages in one step would delay all others.
"""

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work in steps; T is the type of its result."""


def finish(steps: Steps[T]) -> T:
    """Do all steps at once, and return the result.

    >>> def count():
    ...     yield
    ...     return 2
    >>> finish(count())
    2
    """
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
