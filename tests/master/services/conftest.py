from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.ports import AccountRecord
from support.world import World, master


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path) as world:
        yield world


@pytest.fixture
def ann(world: World) -> AccountRecord:
    return world.account("ann")


@pytest.fixture
def bob(world: World) -> AccountRecord:
    return world.account("bob")
