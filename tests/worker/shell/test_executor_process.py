"""The agent's side of an executor."""

import errno
import os
from pathlib import Path

import pytest

from cloudpar_worker.shell import executor_process
from cloudpar_worker.shell.executor_process import ExecutorProcess


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize("failing", ["open_page", "RecallPage"])
def test_a_start_that_fails_leaves_no_descriptor(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an agent near its limit would lose some with each attempt, and never recover."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(executor_process, failing, refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                ExecutorProcess(1, "3.11", None, 10**6)
    assert open_descriptors() == before
    ExecutorProcess(1, "3.11", None, 10**6).close()
    assert open_descriptors() == before
