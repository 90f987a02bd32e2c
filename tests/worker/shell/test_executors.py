"""The agent's executors: what one of them does harms no other."""

from selectors import DefaultSelector
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.shell.executors import Executors
from cloudpar_worker.shell.settings import WorkerSettings
from cloudpar_worker.zygote.messages import LIGHTEN, RESTORE, WEIGH
from support.leases import PYTHON

SETTINGS = WorkerSettings(endpoint="http://127.0.0.1:1", token="t", executors=1)


def test_an_unexpected_error_over_what_an_executor_sent_is_garbage_of_that_executor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Task code chooses the bytes. An exception in the agent's main thread would end the tasks of all accounts."""
    heard: list[on.Stimulus] = []
    zygotes: Any = SimpleNamespace(spawn=lambda *_: None)
    executors = Executors(zygotes, DefaultSelector(), SETTINGS, heard.append)
    executors.spawn(1, PYTHON)
    process = executors._alive[1]

    def fail(**_: bool) -> None:
        raise OverflowError("a bug")

    monkeypatch.setattr(process, "receive", fail)
    executors.check_recall(1)
    assert heard[0] == on.GarbageReceived(1, "a bug")
    process.close()


@pytest.mark.parametrize(
    ("isolation", "light", "is_light", "threads", "expected"),
    [
        ("shared", [1], False, 1, [LIGHTEN]),
        ("shared", [1], True, 9, [LIGHTEN]),
        ("shared", [], True, 9, [RESTORE]),
        ("shared", [], False, 9, [WEIGH]),
        ("shared", [], False, 1, []),
        ("none", [], True, 9, []),
    ],
)
def test_each_measurement_sets_the_weight_of_an_executor(
    monkeypatch: pytest.MonkeyPatch,
    *,
    isolation: Any,
    light: list[int],
    is_light: bool,
    threads: int,
    expected: list[bytes],
) -> None:
    sent: list[bytes] = []
    zygotes: Any = SimpleNamespace(spawn=lambda *_: None, send=lambda _python, operation, _id: sent.append(operation))
    settings = replace(SETTINGS, isolation=isolation)
    executors = Executors(zygotes, DefaultSelector(), settings, lambda _stimulus: None)
    executors.spawn(1, PYTHON)
    process = executors._alive[1]
    monkeypatch.setattr(executors._memory, "measure", lambda *_: None)
    monkeypatch.setattr(process, "is_light", lambda: is_light)
    monkeypatch.setattr(process, "threads", lambda: threads)
    executors.measure([1], light)
    assert sent == expected
    process.close()
