"""The agent's executors: what one of them does harms no other."""

import time
from collections.abc import Iterator
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
    own = Executors(zygotes, DefaultSelector(), SETTINGS, heard.append)
    own.spawn(1, PYTHON)
    process = own._alive[1]

    def fail(**_: bool) -> None:
        raise OverflowError("a bug")

    monkeypatch.setattr(process, "receive", fail)
    own.check_recall(1)
    assert heard[0] == on.GarbageReceived(1, "a bug")
    process.close()


class Weighed:
    """Executor 1, measured once a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, isolation: Any = "shared") -> None:
        self._sent: list[bytes] = []
        zygotes: Any = SimpleNamespace(spawn=lambda *_: None, send=lambda _python, sent, _id: self._sent.append(sent))
        settings = replace(SETTINGS, isolation=isolation)
        self._executors = Executors(zygotes, DefaultSelector(), settings, lambda _stimulus: None)
        self._executors.spawn(1, PYTHON)
        self.process = self._executors._alive[1]
        self._now_s, self.is_light, self.threads = 100.0, False, 1
        monkeypatch.setattr(self._executors._memory, "measure", lambda *_: None)
        monkeypatch.setattr(self.process, "is_light", lambda: self.is_light)
        monkeypatch.setattr(self.process, "threads", lambda: self.threads)
        monkeypatch.setattr(time, "monotonic", lambda: self._now_s)

    def measure(self, *light: int) -> list[bytes]:
        """Return the requests that a measurement has sent to the zygote."""
        self._sent.clear()
        self._now_s += 1.0
        self._executors.measure([1], light)
        return self._sent.copy()


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Weighed]:
    made = Weighed(monkeypatch)
    yield made
    made.process.close()


def test_an_executor_gets_the_lowest_weight_at_once_and_again_after_some_seconds(weighed: Weighed) -> None:
    assert [weighed.measure(1) for _ in range(5)] == [[LIGHTEN], [], [LIGHTEN], [], [LIGHTEN]]


def test_an_executor_gets_its_usual_weight_at_once_and_the_request_is_repeated_while_it_has_the_lowest(
    weighed: Weighed,
) -> None:
    weighed.measure(1)
    weighed.is_light = True
    assert [weighed.measure() for _ in range(3)] == [[RESTORE], [], [RESTORE]]
    weighed.is_light = False
    assert [weighed.measure() for _ in range(3)] == [[], [], []]
    assert weighed.measure(1) == [LIGHTEN]


def test_an_executor_keeps_a_low_weight_that_its_task_has_chosen(weighed: Weighed) -> None:
    weighed.is_light = True
    assert weighed.measure() == []


def test_threads_of_an_executor_are_weighed_at_each_measurement(weighed: Weighed) -> None:
    weighed.threads = 9
    assert weighed.measure() == weighed.measure() == [WEIGH]
    assert [weighed.measure(1) for _ in range(3)] == [[LIGHTEN], [WEIGH], [LIGHTEN]]


def test_executors_of_a_worker_that_is_not_shared_are_not_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = Weighed(monkeypatch, "none")
    weighed.threads = 9
    assert weighed.measure() == []
    weighed.process.close()
