"""Where a task stands in what the user called, and what an exception of the task says of that."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cloudpar.errors import CloudparError
from cloudpar_protocol.brief import brief_call
from cloudpar_protocol.payloads import CallStyle


@dataclass(frozen=True)
class Places:
    """The places of one package's tasks.

    Attributes:
        base: The number of the package's first task in its map; more than 0 only for later packages with `buffersize`.
        tasks: How many tasks there are in all; None if that is not known yet, or says nothing, as of `submit`.
        values: What the tasks were called with, where the caller still has it.
        call: How the task code is called with such a value.
    """

    base: int = 0
    tasks: int | None = None
    values: Sequence[Any] | None = None
    call: CallStyle = "value"

    def identify(self, error: BaseException, package_id: str, index: int, called_with: str | None) -> None:
        """Say on an exception which task it belongs to: `task_index`, `package_id` and a note.

        Args:
            error: Anything that a task raised, or why it has no value.
            package_id: Of its package.
            index: The task's number in its package.
            called_with: What the executor says it was called with; None if the task came to its end otherwise.
        """
        number = self.base + index
        _set(error, "task_index", number)
        _set(error, "package_id", package_id)
        task = f"task {number:,}" if self.tasks is None else f"task {number:,} of {self.tasks:,}"
        given = called_with or self._called_with(index)
        _add_note(error, task if given is None else f"{task}, {given}")

    def _called_with(self, index: int) -> str | None:
        if self.values is None:
            return None
        try:
            return brief_call(self.values[index], self.call)
        except IndexError:  # the list was shortened since the call
            return None


def values_of(values: Iterable[Any]) -> Sequence[Any] | None:
    """The values of a map, if they can be looked up later at no cost."""
    return values if isinstance(values, list | tuple | range) else None


def _add_note(error: BaseException, note: str) -> None:
    """As `BaseException.add_note`, also where the class of the exception refuses new attributes."""
    with suppress(Exception):
        notes = getattr(error, "__notes__", None)
        if isinstance(notes, list):
            notes.append(note)
        elif notes is None:
            object.__setattr__(error, "__notes__", [note])


def _set(error: BaseException, name: str, value: object) -> None:
    if not isinstance(error, CloudparError) and hasattr(type(error), name):
        return  # its class has another meaning for it
    with suppress(Exception):
        object.__setattr__(error, name, value)  # past a __setattr__ that refuses, such as of a frozen dataclass
