"""What an executor leaves is removed; otherwise its user id is not used again."""

import errno
import os
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import cleanup, kernel, uid_locks, uid_pool
from cloudpar_worker.sandbox.confinement import Confinement
from cloudpar_worker.sandbox.sandboxes import Sandbox, Sandboxes
from cloudpar_worker.sandbox.uid_pool import UidPool


def test_a_user_id_with_remains_is_given_to_no_zygote(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(uid_locks, "PLACES", (str(tmp_path), ""))
    monkeypatch.setattr(uid_locks, "_OWNER", os.geteuid())
    mine = UidPool([])
    spoilt, clean = mine.take(), mine.take()
    mine.give_back(clean)
    another = os.fork()  # `spoilt` is not given back, since something of it remains
    if not another:
        theirs = 0
        try:
            theirs = UidPool([]).take()
        finally:
            os._exit(theirs - spoilt if theirs else 255)
    assert os.waitstatus_to_exitcode(os.waitpid(another, 0)[1]) == clean - spoilt
    assert mine.take() == clean


def test_a_cleanup_waits_until_a_process_can_be_forked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel, "adopt_orphans", lambda: None)
    monkeypatch.setattr(cleanup, "kill_orphans", lambda _: False)
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: "there is one")
    sandboxes = Sandboxes(Confinement(tmp=str(tmp_path)), [])
    folder = tmp_path / "left"
    folder.mkdir()
    sandboxes.left(Sandbox(str(folder), None))

    def none_left() -> int:
        raise OSError(errno.EAGAIN, "no process")

    with monkeypatch.context() as full:
        full.setattr(os, "fork", none_left)
        sandboxes.clean_up()
    assert sandboxes.waiting
    assert folder.exists()
    sandboxes.clean_up()
    assert not sandboxes.waiting
    sandboxes.ended(*os.wait())
    assert not sandboxes.cleaning
    assert not folder.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives users")
def test_an_executor_beside_unremovable_remains_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Otherwise a task could find what another account's executor left when its zygote was killed."""
    monkeypatch.setattr(kernel, "adopt_orphans", lambda: None)
    monkeypatch.setattr(uid_pool, "obstacle", lambda _: "there is one")
    monkeypatch.setattr(cleanup, "remove_from", lambda _: False)
    sandboxes = Sandboxes(Confinement(tmp=str(tmp_path)), [])
    tmp_path.chmod(0o777)
    number, parent = uid_pool.FIRST + uid_pool.NUMBER - 4, os.getpid()  # the last user id that is given
    pid = os.fork()
    if not pid:
        status = 1
        try:
            with pytest.raises(OSError, match="cannot be removed"):
                sandboxes.enter(Sandbox(str(tmp_path / "sandbox"), number), parent)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_file_that_cannot_be_removed_is_reported_and_keeps_no_other(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = [tmp_path / str(number) for number in range(3)]
    for file in files:
        file.touch()
    unlink = os.unlink

    def stays(path: str) -> None:
        if path == str(files[1]):
            raise PermissionError(errno.EPERM, "immutable", path)
        unlink(path)

    with monkeypatch.context() as held:
        held.setattr(os, "unlink", stays)
        assert not cleanup.remove_from([str(tmp_path)])
    assert list(tmp_path.iterdir()) == [files[1]]
    assert cleanup.remove_from([str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_a_cleanup_waits_until_the_machine_has_a_free_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one the zygote does not see whether a process of an ended executor still writes into its folder."""

    def full(*_: str) -> None:
        raise OSError(errno.ENFILE, os.strerror(errno.ENFILE))

    with monkeypatch.context() as patch:
        patch.setattr(cleanup, "open", full, raising=False)
        assert cleanup.kill_orphans([])
    monkeypatch.setattr(cleanup, "_children", set)
    assert not cleanup.kill_orphans([])
