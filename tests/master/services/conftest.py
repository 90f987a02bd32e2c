from collections.abc import Iterator
from pathlib import Path

import pytest

from support.world import World, master


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path) as world:
        yield world
