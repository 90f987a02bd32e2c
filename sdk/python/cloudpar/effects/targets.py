"""The base class of targets: a target is an object of the caller with the writes that are gathered for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .errors import write_error

if TYPE_CHECKING:
    from .trails import Trail


class Target(ABC):
    """Gathers the tasks' writes to one object, checks and applies them. Undoes them if this or a later target fails.

    Attributes:
        thing: The caller's object.
        trail: The object's name.
        task: The index of the task whose writes were gathered last; None before the first write.
    """

    def __init__(self, thing: Any, trail: Trail) -> None:
        self.thing = thing
        self.trail = trail
        self.task: int | None = None

    @abstractmethod
    def gather(self, index: int, keys: Any, values: Any) -> tuple[Trail, int] | None:
        """Keep a task's writes; return None.

        If another task has already written one of the elements, return the element's name and that task instead.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise SideEffectError if the writes no longer fit the caller's object."""

    def moved(self) -> Exception:
        """Return the error for an object that the caller changed while tasks wrote to it."""
        return write_error("moved", str(self.trail), self.task or 0)

    @abstractmethod
    def apply(self) -> None:
        """Apply the writes. If this raises, `take_back` restores the object."""

    @abstractmethod
    def take_back(self) -> None:
        """Undo what `apply` has written so far."""
