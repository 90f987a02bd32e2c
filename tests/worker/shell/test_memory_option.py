"""`--memory-mb` on the command line reaches the executors."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from cloudpar.errors import ExecutorOutOfMemory
from support.up import Up, worker

LIMIT = ["--memory-mb", "230"]


@pytest.mark.parametrize("where", ["up", "worker"])
def test_the_memory_option_sets_the_limit_and_the_error_names_it(tmp_path: Path, where: str) -> None:
    def grow(_number: int) -> None:
        held = bytearray()
        while True:
            held += bytearray(10**6)

    with ExitStack() as stack:
        if where == "up":
            up = stack.enter_context(Up(tmp_path, workers=1, more=LIMIT))
        else:
            up = stack.enter_context(Up(tmp_path, workers=0))
            stack.enter_context(worker(up, 1, *LIMIT))
        with up.pool() as pool:
            error = pool.submit(grow, 0).exception()
    assert isinstance(error, ExecutorOutOfMemory)
    assert "over its limit of 230 MB" in str(error)
    assert "--memory-mb" in str(error)
