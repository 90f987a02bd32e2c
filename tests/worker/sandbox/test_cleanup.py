"""Removal of the processes that an executor leaves."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import cleanup, kernel
from worker.isolation.leaving import hopper

MANY = 20_000
"""More processes than start before and while one call kills them."""


def test_a_process_that_forks_and_ends_again_and_again_is_killed_by_one_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such a process has another id each time that the cleanup lists the processes."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reaper = os.fork()
    if not reaper:
        ended = False
        try:
            kernel.adopt_orphans()
            hopper("mark")
            ended = cleanup.kill_orphans(())
            with suppress(ChildProcessError):
                for _ in range(MANY):
                    os.waitpid(-1, 0)
                ended = False
        finally:
            os._exit(0 if ended else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(reaper, 0)[1]) == 0
