"""An executor's own file system for shared memory: its size, and what counts."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import shared_memory
from cloudpar_worker.sandbox.shared_memory import ENTRY_BYTES, SHARED_MEMORY, used_bytes

LIMIT = 8 << 20

pytestmark = pytest.mark.skipif(not shared_memory.own_is_possible(), reason="only root may mount")


def inside(check: Callable[[int], None]) -> None:
    """Check something in a process that has a file system of its own."""
    descriptor = shared_memory.make(LIMIT)
    pid = os.fork()
    if not pid:
        status = 1
        try:
            shared_memory.enter(descriptor)
            check(descriptor)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(descriptor)


def test_a_file_whose_only_descriptor_is_under_way_counts() -> None:
    def check(descriptor: int) -> None:
        assert used_bytes(descriptor) == 0
        one, _two = socket.socketpair()
        path = Path(SHARED_MEMORY, "file")
        with path.open("wb") as file:
            file.write(bytes(1 << 20))
            file.flush()
            path.unlink()
            socket.send_fds(one, [b"."], [file.fileno()])
        assert used_bytes(descriptor) == (1 << 20) + ENTRY_BYTES

    inside(check)


def test_no_file_is_larger_than_the_file_system_whose_size_follows_from_the_memory_limit() -> None:
    def check(descriptor: int) -> None:
        with Path(SHARED_MEMORY, "file").open("wb", buffering=0) as file:
            written = [file.write(bytes(1 << 20)) for _ in range(2 * LIMIT >> 20)]
            assert sum(written) == 2 * LIMIT
            with pytest.raises(OSError, match="No space left"):
                file.write(b".")
        assert LIMIT < used_bytes(descriptor) <= 2 * LIMIT + ENTRY_BYTES

    inside(check)


def test_nothing_of_it_shows_outside() -> None:
    name = f"private-{os.getpid()}"
    inside(lambda _: Path(SHARED_MEMORY, name).mkdir())
    assert not Path(SHARED_MEMORY, name).exists()
