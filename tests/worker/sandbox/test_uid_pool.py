"""Why a worker cannot give its executors users of their own: the mend is of that reason, and of no other."""

import os
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import kernel, uid_pool


@pytest.fixture(autouse=True)
def may_give_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests; nobody becomes anybody."""
    monkeypatch.setattr(kernel, "capabilities", lambda: kernel.NEEDED)
    monkeypatch.setattr(kernel, "become", lambda _: None)
    monkeypatch.setattr(uid_pool, "UidLocks", lambda: None)


def refused(*_: object) -> None:
    raise PermissionError(13, "denied", "/some/file")


def test_nothing_hinders(tmp_path: Path) -> None:
    assert uid_pool.obstacle(str(tmp_path)) == ""
    assert uid_pool.available(str(tmp_path))


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("cloudpar_worker.sandbox.kernel.become", "SETUID"),
        ("cloudpar_worker.sandbox.uid_pool.UidLocks", "/run"),
        ("os.listdir", "read its Python, as /some/file"),
    ],
)
def test_the_mend_is_of_what_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, named: str
) -> None:
    monkeypatch.setattr(where, refused)
    assert named in uid_pool.obstacle(str(tmp_path))
    assert not uid_pool.available(str(tmp_path))


def test_a_folder_that_is_not_everybodys_is_named() -> None:
    assert uid_pool.obstacle("/not/there") == "let every user write into /not/there, as into /tmp"


def test_without_the_rights_nothing_is_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "capabilities", lambda: 0)
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("it tries"))
    assert "SETGID" in uid_pool.obstacle(str(tmp_path))
