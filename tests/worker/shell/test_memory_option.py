"""`--memory-mb` on the command line reaches the executors."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from cli.operation import CLOUDPAR, END_S, environment
from cloudpar import Pool
from cloudpar.errors import ExecutorOutOfMemory


@contextmanager
def command(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [*CLOUDPAR, *arguments], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=END_S)


def line_of(stream: IO[str] | None) -> str:
    assert stream is not None
    return stream.readline()


@pytest.mark.parametrize("where", ["up", "worker"])
def test_the_memory_option_sets_the_limit_and_the_error_names_it(tmp_path: Path, where: str) -> None:
    def grow(_number: int) -> None:
        held = bytearray()
        while True:
            held += bytearray(10**6)

    up = ["up", "--port", "0", "--data", str(tmp_path), "--json"]
    with command(*up, *(["--workers", "1", "--memory-mb", "230"] if where == "up" else ["--workers", "0"])) as process:
        connection = json.loads(line_of(process.stdout))
        endpoint, token = connection["endpoint"], connection["worker_token"]
        with Pool(endpoint, connection["token"], progress=False) as pool:
            future = pool.submit(grow, 0)
            if where == "worker":
                options = ["--endpoint", endpoint, "--token", token, "--executors", "1", "--memory-mb", "230"]
                options += ["--isolation", "own"]  # root may run the tests, with a Python in its home folder
                with command("worker", *options) as other:
                    while "working for" not in line_of(other.stderr):
                        assert other.poll() is None
                    if sys.platform == "linux":  # where every task may read it
                        assert token not in Path(f"/proc/{other.pid}/cmdline").read_text()
                    error = future.exception()
            else:
                error = future.exception()
    assert isinstance(error, ExecutorOutOfMemory)
    assert "over its limit of 230 MB" in str(error)
    assert "--memory-mb" in str(error)
