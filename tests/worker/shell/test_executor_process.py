"""The agent's side of an executor."""

import errno
import io
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloudpar_worker.core.executor_result import SKIPPED, ExecutorResult
from cloudpar_worker.executor.frames import LENGTH, MARKS, READY, WAITS, Garbage, Run, decode_run, encode_result_into
from cloudpar_worker.sandbox.kernel import LINUX
from cloudpar_worker.sandbox.shared_memory import used_bytes
from cloudpar_worker.shell import executor_process
from cloudpar_worker.shell.executor_process import ExecutorProcess
from cloudpar_worker.shell.payload_file import InFile
from support.leases import code_from, lease_of


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


@pytest.mark.parametrize("failing", ["open_page", "RecallPage"])
def test_a_start_that_fails_leaves_no_descriptor(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise an agent near its limit would lose some with each attempt, and never recover."""

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(executor_process, failing, refuse)
        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                ExecutorProcess(1, "3.11", None, 10**6)
    assert open_descriptors() == before
    ExecutorProcess(1, "3.11", None, 10**6).close()
    assert open_descriptors() == before


@pytest.fixture
def executor() -> Iterator[ExecutorProcess]:
    executor = ExecutorProcess(1, "3.11", None, 10**6)
    yield executor
    executor.close()


def frame_of(result: ExecutorResult) -> bytes:
    frame = bytearray()
    encode_result_into(result, frame)
    return bytes(frame)


SKIPS = frame_of(ExecutorResult(0, SKIPPED, 0))


class Refilled:
    """A channel into which task code writes again as soon as the agent has read from it."""

    def __init__(self, executor: ExecutorProcess, writes: bytes) -> None:
        self._channel, self._theirs, self._writes = executor.channel, executor.theirs[0], writes
        os.write(self._theirs, READY + writes)

    def recv_into(self, buffer: bytearray) -> int:
        count = self._channel.recv_into(buffer)
        os.write(self._theirs, self._writes)
        return count

    def recvmsg(self, *arguments: int) -> Any:
        return self._channel.recvmsg(*arguments)

    def fileno(self) -> int:
        return self._channel.fileno()

    def close(self) -> None:
        self._channel.close()


@pytest.mark.parametrize(("writes", "results"), [(SKIPS * 10, 10), (WAITS * 10, 0)], ids=["results", "marks"])
def test_reading_all_that_has_arrived_ends_although_a_task_goes_on_writing(
    executor: ExecutorProcess, writes: bytes, results: int
) -> None:
    """The agent reads all before it checks a recall. A task that wrote as fast as it read once kept it there."""
    refilled: Any = Refilled(executor, writes)
    executor.channel = refilled
    assert len(executor.receive(all_of_it=True)) == results


def test_all_that_has_arrived_is_read_at_once(executor: ExecutorProcess) -> None:
    results = [ExecutorResult(index, "ok", 1, bytes(1_000)) for index in range(100)]
    os.write(executor.theirs[0], READY + b"".join(map(frame_of, results)))
    assert executor.receive(all_of_it=True) == results
    assert executor.ready
    assert executor.receive(all_of_it=True) == []


def test_a_flood_of_marks_is_garbage(executor: ExecutorProcess) -> None:
    os.write(executor.theirs[0], READY + WAITS * (MARKS + 1))
    with pytest.raises(Garbage, match="marks"):
        executor.receive()


NAMED = """
import ctypes, sys, threading
ctypes.CDLL(None).prctl(15, b"Threads:\\t1", 0, 0, 0)
for _ in range(3):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not LINUX, reason="only Linux has the files from which threads are counted")
def test_the_name_of_a_process_changes_nothing_about_its_number_of_threads(executor: ExecutorProcess) -> None:
    """The name comes before the number in the text that the kernel shows. A task could so avoid that its threads are
    weighed.
    """
    command = [sys.executable, "-c", NAMED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as named:
        assert named.stdout
        named.stdout.readline()
        executor.pid = named.pid
        assert executor.threads() == 4
        assert named.stdin
        named.stdin.close()


def test_only_the_first_byte_of_an_executor_brings_a_descriptor(executor: ExecutorProcess, tmp_path: Path) -> None:
    """Task code can send descriptors later, and an agent that kept them could open nothing any more."""
    folder = os.open(tmp_path, os.O_RDONLY)
    theirs = executor._theirs
    assert theirs
    assert executor.shared_memory_bytes() is None
    socket.send_fds(theirs, [READY], [folder])
    assert executor.receive() == []
    before = open_descriptors()
    socket.send_fds(theirs, [SKIPS], [folder])
    assert len(executor.receive()) == 1
    assert open_descriptors() == before
    assert executor.shared_memory_bytes() == used_bytes(str(tmp_path))
    os.close(folder)


def received(executor: ExecutorProcess, count: int) -> tuple[list[Run], list[list[bytes]]]:
    """The runs in the next `count` frames at the executor's end, and the contents of the files that came with each."""
    runs, contents = [], []
    theirs = socket.socket(fileno=os.dup(executor.theirs[0]))
    with theirs:
        for _ in range(count):
            head, files, _, _ = socket.recv_fds(theirs, 4, 2)
            body = b""
            while len(body) < LENGTH.unpack(head)[0]:
                body += theirs.recv(LENGTH.unpack(head)[0] - len(body))
                executor.flush()
            runs.append(decode_run(body))
            contents.append([os.pread(file, 100, 0) for file in files])
            for file in files:
                os.close(file)
    return runs, contents


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[InFile, InFile]]:
    """Task code and the data of two tasks, in files."""
    (tmp_path / "code").write_bytes(b"the code")
    (tmp_path / "data").write_bytes(b"onetwo")
    with io.FileIO(tmp_path / "code") as code, io.FileIO(tmp_path / "data") as data:
        yield InFile(code, [(0, 8)]), InFile(data, [(0, 3), (3, 6)])


def test_files_of_payloads_come_with_their_frames(executor: ExecutorProcess, files: tuple[InFile, InFile]) -> None:
    code, data = files
    lease = lease_of(code_from(b"the code"), 2)
    filling = [bytes(4 * executor_process._CHANNEL_BYTES), b""]  # so that the next frames wait
    before = open_descriptors()
    executor.send(lease, 0, 2, code, data)
    executor.send(lease, 0, 2, b"the code", filling)
    executor.send(lease, 0, 2, code, data)
    assert executor.unsent
    code.file.close()
    data.file.close()
    (first, _, last), contents = received(executor, 3)
    assert contents == [[b"the code", b"onetwo"], [], [b"onetwo"]]
    assert (first.code_place, first.places, first.items) == ((0, 8), [(0, 3), (3, 6)], None)
    assert (last.code_place, last.code, last.places) == (None, None, [(0, 3), (3, 6)])  # the executor has the function
    assert open_descriptors() == before - 2  # those that this test closed


def test_files_that_were_not_sent_are_closed(files: tuple[InFile, InFile]) -> None:
    before = open_descriptors()
    executor = ExecutorProcess(1, "3.11", None, 10**6)
    filling = [bytes(4 * executor_process._CHANNEL_BYTES), b""]
    executor.send(lease_of(code_from(b"the code"), 2), 0, 2, b"the code", filling)
    executor.send(lease_of(code_from(b"the code"), 2), 0, 2, *files)
    assert executor.unsent
    executor.close()
    assert open_descriptors() == before


def test_a_run_goes_without_files_while_too_many_of_them_are_under_way(
    executor: ExecutorProcess, files: tuple[InFile, InFile], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel counts the descriptors that processes of this user have sent and not received yet."""

    def refuse(*_: object) -> int:
        raise OSError(errno.ETOOMANYREFS, "cannot splice")

    before = open_descriptors()
    with monkeypatch.context() as patch:
        patch.setattr(socket, "send_fds", refuse)
        executor.send(lease_of(code_from(b"the code"), 2), 0, 2, *files)
    (run,), contents = received(executor, 1)
    assert contents == [[]]
    assert (run.code, [bytes(item) for item in run.items or ()], run.places) == (b"the code", [b"one", b"two"], None)
    assert open_descriptors() == before
