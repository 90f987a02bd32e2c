"""Removal of the processes that an executor leaves."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
from contextlib import suppress
from cloudpar_worker.sandbox import cleanup, kernel
from worker.isolation.leaving import hopper

MANY = 20_000  # more processes than start before and while one call kills them

kernel.adopt_orphans()
hopper("mark")
ended = cleanup.kill_orphans(())
with suppress(ChildProcessError):
    for _ in range(MANY):
        os.waitpid(-1, 0)
    ended = False
print(ended)
"""


def test_a_process_that_forks_and_ends_again_and_again_is_killed_by_one_call(tmp_path: Path) -> None:
    """Such a process has another id each time that the cleanup lists the processes."""
    # In a program of its own: a fork of this process, which may have threads, could wait for a lock of theirs for good.
    paths = os.pathsep.join(sys.path)
    own = {"PYTHONPATH": paths, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("True\n", "")
