"""Accounts of the folder's `world`."""

import pytest

from cloudpar_master.ports import AccountRecord
from support.world import World


@pytest.fixture
def ann(world: World) -> AccountRecord:
    return world.account("ann")


@pytest.fixture
def bob(world: World) -> AccountRecord:
    return world.account("bob")
