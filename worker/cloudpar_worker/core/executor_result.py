"""What an executor reports about one task: a result, or that the task has none and goes back."""

from typing import Final, Literal

from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import TaskResult

SKIPPED: Final = "skipped"
"""The executor did not run the task, because the agent had recalled it."""
UNFIT: Final = "unfit"
"""The task failed because of something that this machine lacks; the message says what. Another worker may run it."""


class ExecutorResult(TaskResult, array_like=True, frozen=True):
    """A TaskResult that may also have an outcome which only agents and their executors know.

    The agent starts its own executors, so both always have the same release. The master never sees these outcomes: such
    a task goes back to its lease, and no publication contains it.
    """

    outcome: Outcome | Literal["skipped", "unfit"]  # type: ignore[assignment]  # wider than the protocol's, on purpose
