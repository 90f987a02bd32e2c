"""Clusters that `cloudpar up` starts, as an operator starts them."""

import os
from functools import partial
from pathlib import Path

import pytest

from cli.here import Here
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar.cli import access
from support.shared_up import cluster_of

cluster = cluster_of(workers=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make a home in which nothing is configured."""
    for name in [name for name in os.environ if name.startswith(("CLOUDPAR_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(capsys)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have commands in this process give up soon on a master that never answers, not after 8 s."""
    monkeypatch.setattr(access, "RetryPolicy", partial(RetryPolicy, first_contact_s=0.2))
