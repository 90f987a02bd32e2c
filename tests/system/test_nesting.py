"""Tasks that wait for tasks of their own, while all executors of the master run such tasks."""

import asyncio
import concurrent.futures as cf
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cloudpar import Pool
from cloudpar.errors import SerializationError, TooLarge
from cloudpar_protocol.limits import NESTING
from support.shared_up import cluster_of
from support.up import Up

up = cluster_of(workers=1)
"""It has one executor, so that a waiting task that kept it would never end."""


def square(number: int) -> int:
    return number * number


def by_map(pool: Pool) -> int:
    return sum(pool.map(square, range(4)))


def by_submit(pool: Pool) -> int:
    return sum(pool.submit(square, number).result() for number in range(4))


def by_as_completed(pool: Pool) -> int:
    return sum(future.result() for future in cf.as_completed([pool.submit(square, number) for number in range(4)]))


def by_wait(pool: Pool) -> int:
    done, _ = cf.wait([pool.submit(square, number) for number in range(4)])
    return sum(future.result() for future in done)


def by_callback(pool: Pool) -> int:
    found: list[int] = []
    last = threading.Event()

    def note(future: "cf.Future[int]") -> None:
        found.append(future.result())
        if len(found) == 4:
            last.set()

    for number in range(4):
        pool.submit(square, number).add_done_callback(note)
    last.wait()
    return sum(found)


def by_asyncio(pool: Pool) -> int:
    async def gather() -> int:
        return sum(await asyncio.gather(*[asyncio.wrap_future(pool.submit(square, number)) for number in range(4)]))

    return asyncio.run(gather())


def by_parallel_for(pool: Pool) -> int:
    squares = [0] * 4

    def body(number: int) -> None:
        squares[number] = square(number)

    pool.parallel_for(0, 4, body)
    return sum(squares)


def by_thread(pool: Pool) -> int:
    with cf.ThreadPoolExecutor(2) as threads:
        return sum(threads.map(lambda number: pool.submit(square, number).result(), range(4)))


WAYS = [by_map, by_submit, by_as_completed, by_wait, by_callback, by_asyncio, by_parallel_for, by_thread]


@pytest.mark.parametrize("way", WAYS)
def test_a_task_that_waits_makes_room_for_its_own_tasks(up: Up, way: Callable[[Pool], int]) -> None:
    endpoint, token = up.endpoint, up.connection["token"]

    def parent(_number: int) -> int:
        with Pool(endpoint, token, progress=False) as pool:
            return way(pool)

    with up.pool() as pool:
        assert list(pool.map(parent, range(2))) == [14, 14]


def test_a_task_that_reads_a_package_by_its_id_makes_room(up: Up) -> None:
    endpoint, token = up.endpoint, up.connection["token"]

    def parent(_number: int) -> int:
        with Pool(endpoint, token, progress=False) as pool:
            package_id = pool.map(square, range(4)).detach()
            return sum(pool.attach(package_id).results())

    with up.pool() as pool:
        assert pool.submit(parent, 0).result() == 14


def test_a_divide_and_conquer_ends_on_one_executor(up: Up) -> None:
    endpoint, token = up.endpoint, up.connection["token"]

    def total(numbers: list[int]) -> int:
        if len(numbers) == 1:
            return numbers[0]
        middle = len(numbers) // 2
        with Pool(endpoint, token, progress=False) as pool:
            return sum(pool.map(total, [numbers[:middle], numbers[middle:]]))

    with up.pool() as pool:
        assert pool.submit(total, list(range(16))).result() == 120


def test_many_tasks_that_wait_do_not_start_all_at_once(tmp_path: Path) -> None:
    with Up(tmp_path, workers=1) as up:
        endpoint, token = up.endpoint, up.connection["token"]
        agent = up.child("cloudpar_worker").pid

        def processes(_number: int) -> int:
            return len(psutil.Process(agent).children(recursive=True))

        def parent(number: int) -> int:
            with Pool(endpoint, token, progress=False) as pool:
                return max(processes(number), *pool.map(processes, range(2)))

        with up.pool() as pool:
            most = max(pool.map(parent, range(30)))
    assert most <= 3  # the zygote, the executor that waits, and its substitute


def open_gate(gate: str, number: int) -> int:
    while not Path(gate).exists():
        time.sleep(0.01)
    return number * number


def test_a_task_that_left_its_tasks_behind_waits_for_nothing(up: Up, tmp_path: Path) -> None:
    endpoint, token, gate = up.endpoint, up.connection["token"], tmp_path / "gate"

    def leave(_number: int) -> str:
        pool = Pool(endpoint, token, progress=False)
        pool.submit(open_gate, str(gate), 3)  # no executor runs this to its end before the pool is detached
        (package_id,) = pool.detach()
        return package_id

    with up.pool() as pool:
        package_ids = list(pool.map(leave, range(1)))
        gate.touch()
        assert [pool.attach(package_id).results() for package_id in package_ids] == [[9]]


def test_tasks_that_nest_too_deep_say_so(up: Up) -> None:
    endpoint, token = up.endpoint, up.connection["token"]

    def deeper(_number: int) -> int:
        from cloudpar_protocol import nesting

        executor = nesting.here()
        assert executor is not None
        executor.depth = NESTING  # pretends that this many tasks wait for this one
        with Pool(endpoint, token, progress=False) as pool:
            return pool.submit(square, 1).result()

    with up.pool() as pool, pytest.raises(TooLarge, match=f"nest {NESTING} deep, which is the limit"):
        pool.submit(deeper, 0).result()


@pytest.mark.parametrize("call", ["submit", "map", "parallel_for"])
def test_a_captured_pool_is_refused_with_what_to_do_instead(up: Up, call: str) -> None:
    def start(pool: Pool) -> None:
        body = lambda _number: list(pool.map(square, range(3)))  # noqa: E731 - a lambda is what is tested
        if call == "submit":
            pool.submit(body, 0)
        elif call == "map":
            pool.map(body, [0])
        else:
            pool.parallel_for(0, 1, body)

    with up.pool() as pool, pytest.raises(SerializationError, match=r"make one inside the task, by Pool\(endpoint"):
        start(pool)
    with Pool(workers=1) as own, pytest.raises(SerializationError, match=r"by Pool\(\), which is this pool there"):
        start(own)


def test_packages_of_a_task_that_is_stopped_go_on(up: Up, tmp_path: Path) -> None:
    endpoint, token, note = up.endpoint, up.connection["token"], tmp_path / "note"

    def parent(_number: int) -> None:
        pool = Pool(endpoint, token, progress=False)
        future = pool.submit(square, 5)
        package_id = pool.map(square, range(4)).package_id
        future.result()
        note.write_text(str(package_id))
        threading.Event().wait()

    with up.pool() as pool:
        future = pool.submit(parent, 0)
        while not (note.exists() and note.read_text()):
            assert not future.done(), future.exception()
            threading.Event().wait(0.01)
        assert future.cancel()
        assert pool.attach(note.read_text()).results() == [0, 1, 4, 9]


def sum_of_squares(number: int) -> tuple[int, int]:
    """Return the sum, and how many processes the task has started: a pool of its own would be two."""
    with Pool() as pool:
        return sum(pool.map(square, range(number))), len(psutil.Process().children())


@pytest.mark.parametrize("profile", ["", 'endpoint = "http://127.0.0.1:1"\ntoken = "other"'])
def test_a_pool_in_a_task_of_a_pool_on_this_machine_is_that_pool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    (tmp_path / "cloudpar").mkdir()
    (tmp_path / "cloudpar/profile.toml").write_text(profile)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with Pool("local", workers=1) as pool:
        assert list(pool.map(sum_of_squares, range(4))) == [(0, 0), (0, 0), (1, 0), (5, 0)]


def own_pool(_number: int) -> int:
    with Pool(workers=1) as pool:
        return len(psutil.Process().children()) + sum(pool.map(square, range(3)))


def test_a_pool_in_a_task_with_workers_of_its_own_starts_them() -> None:
    with Pool("local", workers=1) as pool:
        assert pool.submit(own_pool, 0).result() == 2 + 5


def a_program_with_a_pool(_number: int) -> str:
    program = "import psutil, cloudpar\nwith cloudpar.Pool(): print(len(psutil.Process().children()))"
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_a_program_that_a_task_starts_has_a_pool_of_its_own() -> None:
    """No executor would make room while tasks of such a program wait."""
    with Pool("local", workers=1) as pool:
        assert pool.submit(a_program_with_a_pool, 0).result() == "2\n"
