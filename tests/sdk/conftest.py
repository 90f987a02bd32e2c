"""Pools for the SDK's tests: on a fake master in this process, and on a real master that all tests share."""

from collections.abc import Iterator

import pytest

from cloudpar import Pool
from support.fake_master import TOKEN, FakeMaster


@pytest.fixture
def master() -> Iterator[FakeMaster]:
    with FakeMaster() as master:
        yield master


@pytest.fixture
def pool(master: FakeMaster) -> Iterator[Pool]:
    with Pool(master.endpoint, TOKEN) as pool:
        yield pool
        master.end_all()  # the pool waits for unfinished tasks


@pytest.fixture(scope="session")
def embedded() -> Iterator[Pool]:
    """A real pool on this machine, for all tests that leave it unchanged."""
    with Pool(workers=2) as pool:
        yield pool


@pytest.fixture(params=["fake", "embedded"])
def any_pool(request: pytest.FixtureRequest) -> Pool:
    """Each of the two pools in turn, for behaviour that both must have."""
    pool: Pool = request.getfixturevalue("pool" if request.param == "fake" else "embedded")
    return pool
