"""What a machine lacks is said with what it means there."""

import os
import tempfile

import pytest

from cloudpar_worker.executor import users
from cloudpar_worker.executor.confinement import OWN_USERS, mechanisms


@pytest.mark.parametrize(("user", "means", "mend"), [(0, "passwords", "ordinary user"), (1000, "modes", "as root")])
def test_one_user_is_worst_if_it_is_root(monkeypatch: pytest.MonkeyPatch, user: int, means: str, mend: str) -> None:
    monkeypatch.setattr(users, "are_there", lambda _: False)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    gap = next(each.gap for each in mechanisms(tempfile.gettempdir()) if each.name == OWN_USERS)
    assert means in gap
    assert mend in gap
