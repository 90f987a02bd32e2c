"""Files from executors: only files in memory are read, and none stays open."""

import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_worker.core.executor_result import ExecutorResult
from cloudpar_worker.executor.frames import READY, Garbage, encode_file, encode_result_into
from cloudpar_worker.executor.result_file import MOST_BYTES, ResultFile
from cloudpar_worker.shell.executor_process import ExecutorProcess


def descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def frame_of(index: int) -> bytes:
    frame = bytearray()
    encode_result_into(ExecutorResult(index, "ok", 1), frame)
    return bytes(frame)


@pytest.fixture
def executor() -> Iterator[ExecutorProcess]:
    """An executor of an own worker, ready; a test plays the executor's process."""
    before = descriptors()
    executor = ExecutorProcess(1, "3.11", None, 10**9, takes_files=True)
    executor._theirs.send(READY)  # type: ignore[union-attr]
    executor.receive()
    yield executor
    executor.close()
    assert descriptors() == before


def send(executor: ExecutorProcess, data: bytes, *files: int) -> None:
    assert executor._theirs
    socket.send_fds(executor._theirs, [data], files)


def content(data: bytes) -> ResultFile:
    made = ResultFile()
    made.fill(lambda file: file.write(data))
    return made


def test_results_in_files_arrive_in_order(executor: ExecutorProcess) -> None:
    for index, data in enumerate((b"first", b"second" * 100_000, b"")):
        file = content(data)
        send(executor, encode_file(len(data)), file.descriptor)
        send(executor, frame_of(index))
        file.close()
    found = executor.receive(all_of_it=True)
    assert [(result.index, result.data) for result in found] == [(0, b"first"), (1, b"second" * 100_000), (2, b"")]


def on_disk() -> int:
    with tempfile.TemporaryFile() as file:
        file.write(bytes(100))
        file.flush()
        return os.dup(file.fileno())


def a_pipe() -> int:
    reading, writing = os.pipe()
    os.close(writing)
    return reading


@pytest.mark.parametrize("make", [on_disk, a_pipe])
def test_no_other_file_is_read(make: object, executor: ExecutorProcess) -> None:
    """Reading a pipe, or a file of a file system that a task has made, could block the agent."""
    descriptor = make()  # type: ignore[operator]
    send(executor, encode_file(10), descriptor)
    os.close(descriptor)
    with pytest.raises(Garbage, match="no executor makes"):
        executor.receive()


@pytest.mark.parametrize("size", [11, MOST_BYTES + 1])
def test_a_file_of_another_size_is_refused(size: int, executor: ExecutorProcess) -> None:
    file = content(b"0123456789")
    send(executor, encode_file(size), file.descriptor)
    file.close()
    with pytest.raises(Garbage, match="a file of"):
        executor.receive()


def test_a_file_that_did_not_come_is_refused(executor: ExecutorProcess) -> None:
    send(executor, encode_file(10))
    with pytest.raises(Garbage, match="did not come"):
        executor.receive()


def test_a_flood_of_files_is_refused(executor: ExecutorProcess) -> None:
    file = content(b"")
    for _ in range(20):
        send(executor, frame_of(0), *[file.descriptor] * 10)
    file.close()
    with pytest.raises(Garbage, match="files at once"):
        executor.receive(all_of_it=True)


def test_a_shared_worker_takes_no_files() -> None:
    before = descriptors()
    executor = ExecutorProcess(1, "3.11", None, 10**9)
    send(executor, READY)
    executor.receive()
    file = content(b"0123456789")
    send(executor, encode_file(10), file.descriptor)
    file.close()
    with pytest.raises(Garbage, match="may send none"):
        executor.receive()
    executor.close()
    assert descriptors() == before
