"""One process holds a user id until it releases it or ends; only root can use the lock file."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar_worker.sandbox import uid_locks
from cloudpar_worker.sandbox.uid_locks import NAME, UidLocks


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The place of the lock folder, where the user of the tests stands for root."""
    place = tmp_path / "run"
    place.mkdir()
    monkeypatch.setattr(uid_locks, "PLACES", (str(place), str(tmp_path / "shm")))
    monkeypatch.setattr(uid_locks, "_OWNER", os.geteuid())
    return place


@pytest.fixture
def elsewhere() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Run a function in another process, which then stays."""
    started: list[int] = []

    def run(what: Callable[[], object]) -> int:
        reading, writing = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                what()
                os.write(writing, b"x")
                signal.pause()
            finally:
                os._exit(1)
        started.append(pid)
        os.close(writing)
        assert os.read(reading, 1), "it failed"
        os.close(reading)
        return pid

    yield run
    for pid in started:
        end(pid)


def end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):  # it has ended before
        return


Elsewhere = Callable[[Callable[[], object]], int]


def test_one_process_holds_a_user_id(elsewhere: Elsewhere) -> None:
    elsewhere(lambda: UidLocks().acquire(7))
    mine = UidLocks()
    with pytest.raises(BlockingIOError):
        mine.acquire(7)
    mine.acquire(8)


def test_a_released_user_id_can_be_taken(elsewhere: Elsewhere) -> None:
    def take_and_free() -> None:
        theirs = UidLocks()
        theirs.acquire(7)
        theirs.release(7)

    elsewhere(take_and_free)
    UidLocks().acquire(7)


def test_a_killed_process_releases_its_user_ids_even_if_its_forks_live(elsewhere: Elsewhere) -> None:
    reading, writing = os.pipe()

    def take_and_fork() -> None:
        theirs = UidLocks()
        theirs.acquire(7)
        if not os.fork():  # the fork has the file open until the test closes the pipe
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)

    end(elsewhere(take_and_fork))
    UidLocks().acquire(7)
    os.close(writing)


def test_a_fork_cannot_release_a_user_id(elsewhere: Elsewhere) -> None:
    mine = UidLocks()
    mine.acquire(7)

    def close_all() -> None:
        mine.release(7)
        os.close(mine._file)

    elsewhere(close_all)

    def try_it() -> None:
        with pytest.raises(BlockingIOError):
            UidLocks().acquire(7)

    elsewhere(try_it)


def test_only_root_may_enter_the_lock_folder(place: Path) -> None:
    UidLocks()
    assert (place / NAME).stat().st_mode & 0o777 == 0o700
    assert (place / NAME / "users").stat().st_mode & 0o777 == 0o600


def squat_folder(at: Path) -> None:
    at.mkdir()
    at.chmod(0o755)


def squat_link(at: Path) -> None:
    own = at.with_name("own")
    own.mkdir(mode=0o700)
    at.symlink_to(own)


def squat_file(at: Path) -> None:
    at.touch(mode=0o600)


@pytest.mark.parametrize("squat", [squat_folder, squat_link, squat_file])
def test_a_lock_file_that_another_user_made_is_not_used(place: Path, squat: Callable[[Path], None]) -> None:
    squat(place / NAME)
    with pytest.raises(OSError):  # noqa: PT011 - the kernel's error or ours; each says enough
        UidLocks()


def test_a_lock_folder_that_another_user_made_is_not_used(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / NAME).mkdir(mode=0o700)
    monkeypatch.setattr(uid_locks, "_OWNER", os.geteuid() + 1)
    with pytest.raises(PermissionError, match="others than root"):
        UidLocks()


@pytest.mark.parametrize("lacking", ["it is not there", "it can only be read"])
def test_shared_memory_holds_the_locks_where_run_is_read_only(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    (tmp_path / "shm").mkdir()
    if lacking == "it is not there":
        place.rmdir()
    else:
        monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((0,) * 8 + (os.ST_RDONLY, 255)))
    UidLocks().acquire(7)
    assert (tmp_path / "shm" / NAME).is_dir()
