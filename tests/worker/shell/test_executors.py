"""The agent's executors: what one of them does harms no other."""

from selectors import DefaultSelector
from types import SimpleNamespace
from typing import Any

import pytest

from cloudpar_worker.core import stimuli as on
from cloudpar_worker.shell.executors import Executors
from cloudpar_worker.shell.settings import WorkerSettings
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
