"""Removal of the processes and files that an executor leaves."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import cleanup, kernel, uid_pool

OWN_USERS = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users")

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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Make a folder that every user may enter and write; pytest's own folders belong to one user."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def as_user(user: int, code: Callable[[], object], *, keep: int = 0) -> None:
    """Run code in a process of this user."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            kernel.act_as(user, user, keep=keep)
            code()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@OWN_USERS
def test_folders_of_other_executors_in_a_folder_are_removed_with_it(open_folder: Path) -> None:
    """Only their owners may empty them. Without Landlock a task can let other accounts make folders in its own."""
    mine, deep = open_folder / "mine", open_folder / "mine/deep"

    def make() -> None:
        mine.mkdir()
        mine.chmod(0o777)

    def use() -> None:
        deep.mkdir()
        (deep / "file").touch()
        deep.chmod(0)

    as_user(uid_pool.FIRST, make)
    as_user(uid_pool.FIRST + 2, use)
    as_user(uid_pool.FIRST, lambda: cleanup.remove(str(mine)), keep=kernel.SETUID)
    assert not mine.exists()


def test_no_other_user_can_name_a_file_again_while_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who may write a file may give it further names, as fast as a cleanup removes them."""
    file = tmp_path / "open"
    file.touch()
    file.chmod(0o666)
    modes: list[int] = []
    unlink = os.unlink

    def see(path: str) -> None:
        modes.append(Path(path).stat().st_mode & 0o777)
        unlink(path)

    monkeypatch.setattr(os, "unlink", see)
    assert cleanup.remove_from([str(tmp_path)])
    assert modes == [0]
