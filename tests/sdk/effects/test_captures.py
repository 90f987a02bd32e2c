from __future__ import annotations

import pickle
from typing import Any

import cloudpickle
import numpy as np

from cloudpar.effects import capture


def test_code_is_small_and_leaves_no_trace_in_cloudpickle() -> None:
    result = [0]
    size = len(pickle.dumps(capture(lambda i: result.__setitem__(i, i)).code))
    assert size < 32_000
    assert not [name for name in cloudpickle.list_registry_pickle_by_value() if name.startswith("cloudpar")]


def test_one_write_takes_few_bytes() -> None:
    result, array = [0] * 1000, np.zeros(1000)

    def body(i: int) -> None:
        result[i] = i + 1

    def on_array(i: int) -> None:
        array[i] = i + 1

    assert len(capture(body).code(5) or b"") < 60
    assert len(capture(on_array).code(5) or b"") < 80


def test_task_code_holds_the_state_at_the_capture() -> None:
    state: list[Any] = [1]
    result = [0]

    def body(i: int) -> None:
        result[i] = state[0]

    captured = capture(body)
    state[0] = 2
    merge = captured.merge()
    merge.add(0, captured.code(0))
    merge.commit()
    assert result == [1]
