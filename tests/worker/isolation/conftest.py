"""Workers of shared pools."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.running_agent import TOKEN
from worker.isolation.shared import MODES, Shared, python_for_all


@pytest.fixture(scope="module")
def python(folder: Path) -> str:
    return python_for_all(folder / "python")


@pytest.fixture(scope="module")
def start(folder: Path, python: str) -> Iterator[Callable[..., Shared]]:
    """Start workers in the module's folder."""
    started: list[Shared] = []

    def start(mode: str, **settings: object) -> Shared:
        own = folder / f"worker-{len(started)}"
        own.mkdir()
        started.append(Shared(mode, own, python, **settings))  # type: ignore[arg-type]
        started[-1].clues |= {"token_hash": hashlib.sha256(TOKEN.encode()).hexdigest()}
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    """Whether executors have user ids of their own; only root can give them."""
    return str(request.param)
