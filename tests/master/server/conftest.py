from collections.abc import Iterator
from pathlib import Path

import pytest

from .served import Served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path / "data")
    yield served
    served.close()


@pytest.fixture
def anyio_backend() -> str:
    """Run the tests that are coroutines as the master runs. The plugin comes with Starlette."""
    return "asyncio"
