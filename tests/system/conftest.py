"""Clusters of real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.up import Up


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Start a master with two executors for all tests of a file."""
    with Up(tmp_path_factory.mktemp("data"), workers=2) as up:
        yield up


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"
