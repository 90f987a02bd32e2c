"""Clusters of real processes."""

from pathlib import Path

import pytest

from support.shared_up import cluster_of

cluster = cluster_of(workers=2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"
