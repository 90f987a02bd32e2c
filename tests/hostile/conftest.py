from collections.abc import Iterator

import pytest

from support.scale import SCALE

from .target import Target

collect_ignore = [] if SCALE.full else ["test_g21_fuzzers.py"]
"""The fuzzers need their own venv, which `make guarantees` makes."""


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Start a master for all tests of a file."""
    target = Target(tmp_path_factory.mktemp("master"))
    yield target
    target.end()
