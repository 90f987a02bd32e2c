"""Guarantee 18: what one account's task code does to its executor, or leaves behind, reaches no other account."""

import builtins
import gc
import getpass
import os
import pickle
import platform
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.executor import runner
from cloudpar_worker.executor.frames import encode_result_into
from cloudpar_worker.sandbox import kernel
from support.leases import lease_of
from support.scale import Scale
from worker.isolation.shared import Shared
from worker.isolation.test_g18_users import OWN_USERS, in_container
from worker.tasks import value_of

Clues = dict[str, Any]
PROCESSES = {"own-users": 40, "one-user": 240}
"""The limit counts all processes of one user, also those of other tests. With one user for all executors the memory of
a process counts as a whole, about 14 MB: so many processes have less than MEMORY_MB.
"""
MEMORY_MB = 4_000
FILE_MB = 4
END_S = 20.0
"""Only something that survives takes this long."""


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared], mode: str) -> Shared:
    return start(mode, executors=1, processes=PROCESSES[mode], file_mb=FILE_MB, memory_mb=MEMORY_MB)


def executor_ends(shared: Shared, pid: int) -> None:
    """Let another account run, and check that everything of the first account is gone soon."""
    assert value_of(shared.run(lambda _: os.getpid(), account="next")) != pid
    psutil.wait_procs([psutil.Process(pid)] if psutil.pid_exists(pid) else [], END_S)


def gone(path: Path) -> bool:
    """Whether a file disappears within the time of a cleanup."""
    until = time.monotonic() + END_S
    while path.exists() and time.monotonic() < until:
        time.sleep(0.005)
    return not path.exists()


def dead(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(END_S)
    except psutil.NoSuchProcess:
        return True
    return not psutil.pid_exists(pid)


def test_the_user_of_an_executor_has_a_name_for_libraries(shared: Shared) -> None:
    assert value_of(shared.run(lambda _: getpass.getuser())) == "cloudpar"


def test_g18_an_executor_serves_one_account(
    shared: Shared, scale: Scale, mode: str, reached: Callable[[str], None]
) -> None:
    """The tasks of three accounts in turn never share a process."""
    accounts: dict[int, set[str]] = {}
    turns = scale(12, 200)
    for turn in range(turns):
        account = f"account-{turn % 3}"
        accounts.setdefault(value_of(shared.run(lambda _: os.getpid(), account=account)), set()).add(account)
    assert {len(served) for served in accounts.values()} == {1}
    reached(f"{turns} turns of 3 accounts, {mode}: no executor served two")


def spoil(_: Clues) -> int:
    os.environ["LD_PRELOAD"] = "/tmp/evil.so"
    os.umask(0)
    builtins.print = None  # type: ignore[assignment]
    runner._failure = None  # type: ignore[assignment]
    builtins.spoilt = True  # type: ignore[attr-defined]
    return os.getpid()


def spoilt(_: Clues) -> Any:
    return [os.environ.get("LD_PRELOAD"), hasattr(builtins, "spoilt"), print is None, runner._failure is None]


def test_g18_what_a_task_changes_in_python_ends_with_its_executor(shared: Shared) -> None:
    shared.run(spoil, account="spoiler")
    assert value_of(shared.run(spoilt, account="another")) == [None, False, False, False]


def daemon(_: Clues) -> tuple[int, int]:
    """Become a daemon: two forks, a session of its own, and as many ignored signals as possible."""
    reading, writing = os.pipe()
    if not os.fork():
        os.setsid()
        if not os.fork():
            for number in range(1, 32):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    continue
            os.write(writing, str(os.getpid()).encode())
            while True:
                time.sleep(60)
        os._exit(0)
    return os.getpid(), int(os.read(reading, 20))


def test_g18_a_daemon_does_not_survive_its_account(shared: Shared) -> None:
    executor, left = value_of(shared.run(daemon))
    executor_ends(shared, executor)
    assert dead(left)


def test_g18_a_daemon_ends_soon_after_its_task(shared: Shared) -> None:
    """No account pays for its time."""
    executor, left = value_of(shared.run(daemon))
    assert dead(left)
    assert dead(executor)


def headless(_: Clues) -> tuple[int, int]:
    """Leave a process that computes, and whose first thread ends: the kernel shows the process as ended."""
    child = os.fork()
    if not child:
        threading.Thread(target=spin).start()
        kernel.syscall(60 if platform.machine() == "x86_64" else 93, 0)  # exit, which ends one thread
    return os.getpid(), child


def test_g18_a_process_whose_first_thread_has_ended_ends_soon_after_its_task(shared: Shared) -> None:
    executor, left = value_of(shared.run(headless))
    assert dead(left)
    assert dead(executor)


def spin() -> None:
    while True:
        pass


def compute_on(_: Clues) -> int:
    """Leave a thread that computes."""
    threading.Thread(target=spin, daemon=True).start()
    return os.getpid()


def test_g18_a_thread_that_computes_ends_soon_after_its_task(shared: Shared) -> None:
    assert dead(value_of(shared.run(compute_on)))


def started_process(_: Clues) -> int:
    subprocess.run(["true"], check=True)
    left = os.posix_spawn("/bin/true", ["true"], {})
    time.sleep(0.3)  # the executor is measured meanwhile
    assert psutil.Process(left).status() == psutil.STATUS_ZOMBIE
    return os.getpid()


def test_an_executor_whose_processes_have_ended_stays(shared: Shared) -> None:
    first = value_of(shared.run(started_process))
    time.sleep(1.5)
    assert value_of(shared.run(lambda _: os.getpid())) == first


def fork_bomb(_: Clues) -> tuple[int, list[int], str]:
    children: list[int] = []
    while len(children) < 5_000:
        try:
            pid = os.fork()
        except OSError as error:
            return os.getpid(), children, type(error).__name__
        if not pid:
            os.setsid()
            time.sleep(3600)
            os._exit(0)
        children.append(pid)
    return os.getpid(), children, "none"


def test_g18_a_fork_bomb_is_bounded_and_removed(shared: Shared, mode: str) -> None:
    executor, children, error = value_of(shared.run(fork_bomb))
    assert error == "BlockingIOError"
    assert mode == "one-user" or len(children) < PROCESSES[mode]
    executor_ends(shared, executor)
    assert all(map(dead, children))


def file_bomb(_: Clues) -> tuple[int, str, int]:
    path = Path(tempfile.gettempdir(), "large")
    try:
        with path.open("wb", buffering=0) as file:
            while file.write(bytes(1 << 20)) == 1 << 20:
                pass
            file.write(b"x")
    except OSError as error:
        return os.getpid(), type(error).__name__, path.stat().st_size
    return os.getpid(), "none", path.stat().st_size


def test_g18_a_file_has_a_limit(shared: Shared) -> None:
    _, error, size = value_of(shared.run(file_bomb))
    assert (error, size) == ("OSError", FILE_MB << 20)


def fill(_: Clues) -> tuple[int, str]:
    """Leave many files, in deep folders, with odd names, and hard to remove."""
    folder = tempfile.gettempdir()
    for number in range(200):
        Path(folder, f"{number}").write_bytes(bytes(1 << 14))
    Path(folder, "link").symlink_to("/usr")
    os.mkfifo(Path(folder, "pipe"))
    for _level in range(300):
        os.mkdir("d" * 100)  # noqa: PTH102 - longer than a path may be
        os.chdir("d" * 100)
    Path(folder, "closed").mkdir()
    Path(folder, "closed", "file").touch()
    Path(folder, "closed").chmod(0)
    return os.getpid(), folder


def test_g18_files_are_removed_with_their_executor(shared: Shared) -> None:
    executor, folder = value_of(shared.run(fill))
    assert Path(folder).exists()
    executor_ends(shared, executor)
    assert gone(Path(folder))
    assert Path("/usr").is_dir()


def leave_shared_memory(clues: Clues) -> tuple[int, list[str]]:
    paths = [f"/dev/shm/left-{os.getpid()}", f"{clues['open_to_all']}/left"]
    left = []
    for path in paths:
        try:
            Path(path).write_text("secret")
        except OSError:
            continue
        left.append(path)
    return os.getpid(), left


def test_g18_shared_memory_is_removed_with_its_executor(shared: Shared, mode: str) -> None:
    executor, left = value_of(shared.run(leave_shared_memory))
    assert len(left) == (1 if mode == "own-users" else 0)
    executor_ends(shared, executor)
    assert all(gone(Path(path)) for path in left)


def memory_bomb(_: Clues) -> None:
    held = bytearray()
    while True:
        held += bytes(1 << 20)


def test_g18_a_memory_bomb_ends_only_itself(shared: Shared) -> None:
    assert shared.run(memory_bomb).outcome == "memory"
    assert value_of(shared.run(lambda _: 1)) == 1


def forge(_: Clues) -> None:
    """Send a result for a task that the executor was not given, in the executor's own format."""
    channels = [each for each in gc.get_objects() if isinstance(each, socket.socket) and each.fileno() >= 0]
    frame = bytearray()
    encode_result_into(TaskResult(7, "ok", 1, pickle.dumps("forged")), frame)
    for channel in channels:
        with suppress(OSError):  # the executor has closed the zygote's sockets
            channel.sendall(frame)
    time.sleep(60)


def test_g18_a_result_for_another_accounts_task_is_rejected(shared: Shared) -> None:
    lease = lease_of(lambda index: forge({}) if index == 0 else index, 10)
    shared.master.hand_out(lease)
    results = shared.master.wait_for_results(10, lease.package_id)
    assert results[0].outcome == "crashed"
    assert [value_of(results[index]) for index in range(1, 10)] == list(range(1, 10))


def fake_time(_: Clues) -> None:
    time.sleep(0.3)
    now = time.monotonic_ns()
    runner._clock = lambda: now - 10**12
    time.monotonic_ns = lambda: 0


def test_g18_a_faked_duration_is_not_believed(shared: Shared) -> None:
    assert shared.run(fake_time, account="faker").duration_us > 250_000


def stay(_: Clues) -> tuple[int, str]:
    _executor, left = daemon({})
    return left, tempfile.gettempdir()


def test_g18_nothing_survives_the_worker(start: Callable[..., Shared], mode: str) -> None:
    shared = start(mode, executors=1)
    left, folder = value_of(shared.run(stay))
    shared.agent.process.kill()
    assert dead(left)
    assert gone(Path(folder))


def test_g18_an_executor_that_cannot_start_fails_no_task(start: Callable[..., Shared], mode: str) -> None:
    """It cannot start, as when another account's task has filled the disk."""
    shared = start(mode, executors=1)
    shared.run(lambda _: None, account="first")
    shared.tmp.chmod(0o555)
    lease = lease_of(lambda _: "well", 1, account="another")
    shared.master.hand_out(lease)
    until = time.monotonic() + END_S
    while "cannot start" not in shared.agent.log and time.monotonic() < until:
        time.sleep(0.01)
    assert "Permission denied" in shared.agent.log
    shared.tmp.chmod(0o1777)
    (result,) = shared.master.wait_for_results(1, lease.package_id).values()
    assert value_of(result) == "well"


def block(_: Clues) -> tuple[int, list[str]]:
    """Leave folders with many names, so that a cleanup that renames what it finds meets them."""
    left = []
    for place in (tempfile.gettempdir(), f"/dev/shm/left-{os.getpid()}"):
        try:
            Path(place, "deep/deeper").mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        left.append(place)
        for pid in range(os.getpid(), os.getpid() + 400):
            for number in range(3):
                Path(place, f".{pid}-{number}/full").mkdir(parents=True, exist_ok=True)
    return os.getpid(), left


def test_g18_folders_with_prepared_names_do_not_stop_a_cleanup(shared: Shared) -> None:
    executor, left = value_of(shared.run(block))
    executor_ends(shared, executor)
    assert left
    assert all(gone(Path(path)) for path in left)


def open_folder(_: Clues) -> str:
    """Leave a folder in shared memory that every user may change."""
    path = Path(f"/dev/shm/open-{os.getpid()}")
    path.mkdir()
    path.chmod(0o777)
    return str(path)


def use_folder(clues: Clues) -> None:
    """Leave a file of this user in another account's folder, where only the owner of the folder could remove it."""
    Path(clues["folder"], "file").touch()


@OWN_USERS
def test_g18_no_account_leaves_files_in_a_folder_of_another_one(start: Callable[..., Shared]) -> None:
    """The file would count as memory of the next account whose executor gets the user id."""
    shared = start("own-users", executors=2)
    folder = value_of(shared.run(open_folder, account="first"))
    error = pickle.loads(shared.run(use_folder, account="second", clues={"folder": folder}).data or b"N.")
    assert type(error) is FileNotFoundError


@OWN_USERS
def test_g18_where_executors_share_shared_memory_no_task_makes_folders_there(start: Callable[..., Shared]) -> None:
    shared = start("own-users", executors=1, command=["-c", in_container()])
    error = pickle.loads(shared.run(open_folder).data or b"N.")
    assert type(error) is PermissionError
    (note,) = error.__notes__
    assert "tasks can make files in /dev/shm, but no folders" in note
    executor, (left,) = value_of(shared.run(leave_shared_memory))
    assert Path(left).exists()
    executor_ends(shared, executor)
    assert gone(Path(left))
