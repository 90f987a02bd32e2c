"""An executor's report about one task: a result, or the reason why the task goes back to its lease without a result."""

from typing import Final, Literal

from cloudpar_protocol.errors import Outcome
from cloudpar_protocol.payloads import TaskResult

SKIPPED: Final = "skipped"
"""The executor did not run the task, because the agent had recalled it."""
UNFIT: Final = "unfit"
"""The task failed, perhaps because this machine lacks something that the message names. Another worker may run the
task.
"""


class ExecutorResult(TaskResult, array_like=True, frozen=True):
    """A TaskResult that may also have the outcome SKIPPED or UNFIT, which only agents and their executors know.

    Agents assume that their executors have the same release, so no other release needs to know these outcomes. The
    master never sees them: a task with such an outcome goes back to its lease, and no publication contains the result.
    """

    outcome: Outcome | Literal["skipped", "unfit"]  # type: ignore[assignment]  # wider than the protocol's, on purpose
