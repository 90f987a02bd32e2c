from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.database import Database
from support.clock import SetClock


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "master.sqlite")
    yield database
    database.close()
