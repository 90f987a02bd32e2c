from collections.abc import Iterator
from pathlib import Path

import pytest

from aws.differences import MINISTACK, ON_MINISTACK
from aws.stores import on_dynamodb_local, on_moto
from support.clock import SetClock
from support.stores import Stores


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that a stand-in cannot pass (aws.differences lists them with the reasons)."""
    if ON_MINISTACK:
        gone = [item for item in items if getattr(item, "originalname", "") in MINISTACK]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with on_moto(tmp_path, clock) as stores:
        yield stores


@pytest.fixture
def real_tables(tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    """The adapters with their tables on DynamoDB Local, AWS's own engine."""
    with on_dynamodb_local(tmp_path, clock) as stores:
        yield stores


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the waits between attempts instead of waiting."""
    waits: list[float] = []
    monkeypatch.setattr("cloudpar_master.adapters.aws.backoff.time.sleep", waits.append)
    return waits
