from collections.abc import Iterator
from pathlib import Path

import pytest

from aws.differences import conforming
from support.clock import SetClock
from support.stores import Factory, Stores
from support.world import World, world_on

ON_NONE = "on none"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test on every adapter, but not where AWS or its stand-in answers otherwise (aws.differences says why)."""
    if "factory" in metafunc.fixturenames:
        suite = str(metafunc.module.__name__).rpartition(".")[2]
        factories = conforming(suite, metafunc.function.__name__)
        ids = [str(getattr(each, "__name__", each)) for each in factories]
        metafunc.parametrize("factory", factories or [None], ids=ids or [ON_NONE])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that run on no adapter."""
    gone = [item for item in items if ON_NONE in item.name]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]


@pytest.fixture
def stores(factory: Factory, tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with factory(tmp_path, clock) as stores:
        yield stores


@pytest.fixture
def others(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> Iterator[Stores]:
    """Open the adapters of another process on the same data."""
    with factory(tmp_path, clock) as others:
        yield others


@pytest.fixture
def world(stores: Stores, clock: SetClock) -> World:
    return world_on(stores, clock)
