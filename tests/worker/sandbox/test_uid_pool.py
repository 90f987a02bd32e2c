"""Why a worker cannot give its executors user ids of their own; the advice names exactly this reason."""

import os
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import kernel, uid_pool


@pytest.fixture(autouse=True)
def may_give_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user of the tests counts as able to change users, and no process really does."""
    monkeypatch.setattr(kernel, "capabilities", lambda: kernel.NEEDED)
    monkeypatch.setattr(kernel, "become", lambda _: None)
    monkeypatch.setattr(uid_pool, "UidLocks", lambda: None)


def refused(*_: object) -> None:
    raise PermissionError(13, "denied", "/some/file")


def test_with_all_rights_there_is_no_obstacle(tmp_path: Path) -> None:
    assert uid_pool.obstacle(str(tmp_path)) == ""


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("cloudpar_worker.sandbox.kernel.become", "SETUID"),
        ("cloudpar_worker.sandbox.uid_pool.UidLocks", "/run"),
        ("os.listdir", "read its Python, as /some/file"),
    ],
)
def test_the_advice_names_what_was_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, named: str
) -> None:
    monkeypatch.setattr(where, refused)
    assert named in uid_pool.obstacle(str(tmp_path))


def test_a_temporary_folder_that_others_cannot_write_is_named() -> None:
    assert uid_pool.obstacle("/not/there") == "let every user write into /not/there, as into /tmp"


def test_without_the_capabilities_nothing_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "capabilities", lambda: 0)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it tries"))
    assert "SETGID" in uid_pool.obstacle(str(tmp_path))
