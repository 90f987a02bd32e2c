"""Masters with both kinds of queue: one looks for chunks that a worker can run, like SQLite's; one cannot, like SQS."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.memory import stores as memory
from support.world import World, master


@pytest.fixture(params=["a queue that looks", "a queue that cannot look"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, factory=memory.in_memory) as made:
        memory._data[tmp_path].letters.looks = request.param == "a queue that looks"
        yield made
