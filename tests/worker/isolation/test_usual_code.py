"""Ordinary code works in the sandbox of a shared pool."""

import asyncio
import ctypes
import multiprocessing
import os
import pickle
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

import pytest

from worker.isolation.shared import Shared

Clues = dict[str, Any]


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1)


def loop(_: Clues) -> Any:
    """Programs, signals, threads and sockets with asyncio."""

    async def all_of_it() -> Any:
        got: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set_result, "signal")
        os.kill(os.getpid(), signal.SIGUSR1)
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        sleeper = await asyncio.create_subprocess_exec("sleep", "60")
        sleeper.terminate()
        program = await asyncio.create_subprocess_exec("echo", "said", stdout=subprocess.PIPE)
        said, _ = await program.communicate()
        writer.close()
        return await got, await sleeper.wait(), said, await reader.read(), await asyncio.to_thread(len, "four")

    return asyncio.run(all_of_it())


def programs(_: Clues) -> Any:
    with subprocess.Popen(["/bin/sleep", "60"], start_new_session=True) as sleeper:
        sleeper.send_signal(signal.SIGTERM)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as waiting:
        waiting.kill()
    return sleeper.returncode, waiting.returncode


def files(_: Clues) -> Any:
    folder = Path(tempfile.mkdtemp())
    script = folder / "script"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o700)
    os.chmod("script", 0o750, dir_fd=os.open(folder, os.O_RDONLY))
    copy = folder / "copy"
    shutil.copy2(script, copy)
    return stat.S_IMODE(copy.stat().st_mode), subprocess.run([copy], check=True, capture_output=True).stdout


def placed(_: Clues) -> Any:
    """A thread chooses its cores as OpenMP does with OMP_PROC_BIND: by its number, although it means itself."""
    libc = ctypes.CDLL(None)
    libc.pthread_self.restype = ctypes.c_void_p
    mask = sum(1 << core for core in os.sched_getaffinity(0)).to_bytes(128, "little")
    return libc.pthread_setaffinity_np(ctypes.c_void_p(libc.pthread_self()), len(mask), mask)


def workers(_: Clues) -> Any:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        squares = pool.map(abs, [-1, -2])
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
        return squares, list(pool.map(abs, [-3, -4]))


WANTED: list[tuple[Callable[[Clues], Any], Any]] = [
    (loop, ("signal", -15, b"said\n", b"", 4)),
    (programs, (-15, -9)),
    (files, (0o750, b"ran\n")),
    (placed, 0),
]


@pytest.mark.parametrize(("task", "wanted"), WANTED)
def test_usual_code_works_in_a_sandbox(shared: Shared, task: Callable[[Clues], Any], wanted: Any) -> None:
    result = shared.run(task)
    assert pickle.loads(result.data or b"N.") == wanted, result


def synchronized(_: Clues) -> Any:
    return multiprocessing.get_context("fork").Lock().acquire()


def value(_: Clues) -> Any:
    return multiprocessing.get_context("fork").Value("i", 7, lock=False).value


def block(_: Clues) -> Any:
    shared = SharedMemory(create=True, size=8)
    shared.close()
    shared.unlink()
    return bool(shared.name)


@pytest.mark.parametrize(
    ("task", "wanted"), [(workers, ([1, 2], [3, 4])), (synchronized, True), (value, 7), (block, True)]
)
def test_processes_share_work_where_there_is_shared_memory(
    shared: Shared, mode: str, task: Callable[[Clues], Any], wanted: Any
) -> None:
    result = shared.run(task)
    got = pickle.loads(result.data or b"N.")
    if mode == "own-users":
        assert got == wanted, result
    else:
        assert isinstance(got, PermissionError), result
        (note,) = got.__notes__
        assert "no shared memory" in note
        assert note in (result.traceback or "")


def test_a_file_that_is_closed_to_tasks_has_a_note_with_the_option_that_opens_it(shared: Shared) -> None:
    error = pickle.loads(shared.run(lambda _: Path("/etc/shadow").read_text()).data or b"N.")
    assert type(error) is PermissionError
    (note,) = error.__notes__
    assert "'/etc/shadow' is closed to them" in note
    assert "cloudpar worker --readable PATH" in note


def test_a_file_that_the_task_itself_has_closed_has_no_note(shared: Shared) -> None:
    def closed(_: Clues) -> str:
        file = Path(tempfile.mkdtemp()) / "mine"
        file.touch(mode=0)
        return file.read_text()

    error = pickle.loads(shared.run(closed).data or b"N.")
    assert (type(error), hasattr(error, "__notes__")) == (PermissionError, False)


def test_a_port_that_a_task_may_not_choose_has_a_note_with_the_port_that_it_may(shared: Shared) -> None:
    def listen(clues: Clues) -> Any:
        with socket.create_server(("127.0.0.1", 0)) as free, socket.create_connection(free.getsockname()):
            return socket.create_server(("127.0.0.1", clues["service_port"]))

    result = shared.run(listen)
    assert "can listen only at TCP ports that the system chooses (port 0)" in (result.traceback or "")
