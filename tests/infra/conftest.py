"""The script infra/acceptance.sh in a checkout of its own."""

from pathlib import Path

import pytest

from .checkout import Checkout


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)
