"""A fixture with a master for all tests of a file.

It is not in up.py, because the measurements import up.py and run without pytest.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from .up import Up


def cluster_of(workers: int) -> Any:
    """Make a fixture: a master with this many executors, for all tests of a file."""

    @pytest.fixture(scope="module")
    def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
        with Up(tmp_path_factory.mktemp("data"), workers) as up:
            yield up

    return cluster
