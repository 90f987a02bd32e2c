"""The caller's objects, and the writes that wait for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .errors import trouble

if TYPE_CHECKING:
    from .trails import Trail


class Target(ABC):
    """Where writes go: gathered task by task, checked, applied, and taken back if a later target fails.

    Attributes:
        thing: The caller's object.
        trail: Its name.
        task: The last task that wrote here, or None.
    """

    def __init__(self, thing: Any, trail: Trail) -> None:
        self.thing = thing
        self.trail = trail
        self.task: int | None = None

    @abstractmethod
    def gather(self, index: int, keys: Any, values: Any) -> tuple[Trail, int] | None:
        """Keeps a task's writes; returns the name of an element that another task wrote, and that task."""

    @abstractmethod
    def check(self) -> None:
        """Raises SideEffectError if the writes no longer fit the caller's object."""

    def moved(self) -> Exception:
        """Returns the error for an object that changed here while tasks wrote to it elsewhere."""
        return trouble("moved", str(self.trail), self.task or 0)

    @abstractmethod
    def apply(self) -> None:
        """Writes. Whatever it raises, `take_back` then restores the object."""

    @abstractmethod
    def take_back(self) -> None:
        """Restores what `apply` has overwritten so far."""
