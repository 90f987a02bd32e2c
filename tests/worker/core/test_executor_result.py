"""What only agents and their executors say to each other does not reach the master."""

import pytest
from msgspec import ValidationError, msgpack

from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.core.executor_result import SKIPPED, UNFIT, ExecutorResult

FIELDS = (5, "ok", 100, b"value", None, "message", "traceback", "stdout", "stderr")


def test_a_result_of_an_executor_has_the_bytes_of_a_task_result() -> None:
    assert msgpack.encode(ExecutorResult(*FIELDS)) == msgpack.encode(TaskResult(*FIELDS))  # type: ignore[arg-type]


@pytest.mark.parametrize("outcome", [SKIPPED, UNFIT])
def test_outcomes_of_executors_alone_are_none_of_the_protocols(outcome: str) -> None:
    body = msgpack.encode(ExecutorResult(5, outcome, 0))  # type: ignore[arg-type]
    assert msgpack.decode(body, type=ExecutorResult).outcome == outcome
    with pytest.raises(ValidationError):
        msgpack.decode(body, type=TaskResult)
