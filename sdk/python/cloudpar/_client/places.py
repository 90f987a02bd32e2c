"""Finds a task's index and arguments in the user's call, and adds them to an exception of the task."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cloudpar.errors import CloudparError
from cloudpar_protocol.brief import brief_call
from cloudpar_protocol.payloads import CallStyle


@dataclass(frozen=True)
class Places:
    """The indexes and arguments of one package's tasks in the user's call.

    Attributes:
        base: The index of the package's first task in its map; above 0 only for later packages with `buffersize`.
        tasks: The total number of tasks in the call. None if the number is unknown, or has no meaning (for `submit`).
        values: The arguments of the tasks, if the caller still has them; otherwise None.
        call: How the task code is called with such a value.
    """

    base: int = 0
    tasks: int | None = None
    values: Sequence[Any] | None = None
    call: CallStyle = "value"

    def identify(
        self, error: BaseException, package_id: str, index: int, called_with: str | None, *, note: bool = True
    ) -> None:
        """Add `task_index`, `package_id` and a note to an exception, so that they name its task.

        This method does not change an attribute that the exception's class itself uses, and leaves out an attribute or
        a note that the class refuses.

        Args:
            error: The exception that the task raised, or the reason why the task has no value.
            package_id: The id of the task's package.
            index: The task's index in its package.
            called_with: The executor's description of the arguments; None if there is no such description.
            note: Whether to add the note.
        """
        number = self.base + index
        _set(error, "task_index", number)
        _set(error, "package_id", package_id)
        if not note:
            return
        task = f"task {number:,}" if self.tasks is None else f"task {number:,} of {self.tasks:,}"
        given = called_with or self._called_with(index)
        _add_note(error, task if given is None else f"{task}, {given}")

    def _called_with(self, index: int) -> str | None:
        if self.values is None:
            return None
        try:
            return brief_call(self.values[index], self.call)
        except IndexError:  # the caller has shortened the list since
            return None


def values_of(values: Iterable[Any]) -> Sequence[Any] | None:
    """Return the values of a map if they are a list, a tuple or a range, so that a value can be looked up later."""
    return values if isinstance(values, list | tuple | range) else None


def _add_note(error: BaseException, note: str) -> None:
    """Add a note as `BaseException.add_note` does, even if the exception's class refuses new attributes."""
    with suppress(Exception):
        notes = getattr(error, "__notes__", None)
        if isinstance(notes, list):
            notes.append(note)
        elif notes is None:
            object.__setattr__(error, "__notes__", [note])


def _set(error: BaseException, name: str, value: object) -> None:
    if not isinstance(error, CloudparError) and hasattr(type(error), name):
        return  # the class uses this name itself
    with suppress(Exception):
        object.__setattr__(error, name, value)  # bypasses a __setattr__ that refuses, as in a frozen dataclass
