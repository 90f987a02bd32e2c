from collections.abc import Iterator
from pathlib import Path

import pytest

from aws.stores import conforming
from master.stores import FACTORIES, Factory, SetClock, Stores


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every adapter, but for what AWS or its stand-in answers otherwise (aws.stores.DIFFERENT says what and why)."""
    if "factory" in metafunc.fixturenames:
        suite = str(metafunc.module.__name__).rpartition(".")[2]
        factories = [*FACTORIES, *conforming(suite, metafunc.function.__name__)]
        metafunc.parametrize("factory", factories, ids=[str(getattr(each, "__name__", each)) for each in factories])


@pytest.fixture
def stores(factory: Factory, tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with factory(tmp_path, clock) as stores:
        yield stores


@pytest.fixture
def others(factory: Factory, tmp_path: Path, clock: SetClock, stores: Stores) -> Iterator[Stores]:
    """Another process's adapters on the same data."""
    with factory(tmp_path, clock) as others:
        yield others
