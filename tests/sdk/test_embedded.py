"""A pool with its own master and agent: real processes, from their start to their end."""

import concurrent.futures as cf
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from cloudpar import Pool
from cloudpar._client.connection import Connection
from cloudpar._client.retry_policy import RetryPolicy
from cloudpar._local.child import Child, Report
from cloudpar.errors import (
    ExecutorCrashed,
    ExecutorOutOfMemory,
    LocalClusterFailed,
    TaskLost,
    TooLarge,
)
from cloudpar_master.adapters.embedded.code_blobs import KEPT_BYTES
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from cloudpar_protocol.limits import BODY_BYTES
from cloudpar_protocol.parts import NOT_CHECKED
from cloudpar_protocol.transport.channel import Channel
from cloudpar_protocol.transport.connection_pool import ConnectionPool
from cloudpar_protocol.transport.payload_folder import UPLOAD, PayloadFolder
from cloudpar_protocol.transport.socket_pool import Timeouts
from cloudpar_worker.executor.code_cache import CACHED_BYTES
from support.waiting import await_file
from worker.agent_killer import end_agent

MEGABYTE = 1 << 20


def pids(pool: Pool) -> tuple[int, int]:
    cluster = pool._lifetime.cluster
    assert cluster is not None
    master, agent = cluster.pids
    assert master is not None
    assert agent is not None
    return master, agent


def family(pool: Pool) -> list[psutil.Process]:
    """The pool's processes, including executors."""
    parents = [psutil.Process(pid) for pid in pids(pool)]
    return [*parents, *(child for parent in parents for child in parent.children(recursive=True))]


def touch_and_wait(path: str) -> None:
    Path(path).touch()
    threading.Event().wait(600)


def test_close_ends_every_process_and_removes_the_data() -> None:
    pool = Pool(workers=2)
    assert pool.submit(abs, -1).result(60) == 1
    processes = family(pool)
    cluster = pool._lifetime.cluster
    assert cluster is not None
    assert cluster.folder.exists()
    pool.shutdown()
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert not alive
    assert not cluster.folder.exists()


def test_a_pool_has_one_executor_for_each_core_by_default() -> None:
    with Pool() as pool:
        assert list(pool.map(abs, range(100))) == list(range(100))
        assert pool._lifetime.cluster is not None
        assert pool._lifetime.cluster.workers == len(os.sched_getaffinity(0))


KILLED = """
import sys
from cloudpar import Pool
pool = Pool(workers=2)
assert pool.submit(abs, -1).result() == 1
print(*pool._lifetime.cluster.pids, pool._lifetime.cluster.folder, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_processes_end_with_a_client_that_is_killed(number: signal.Signals) -> None:
    client = subprocess.Popen([sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with client:
        assert client.stdout is not None
        *numbers, _folder = client.stdout.readline().split()
        parents = [psutil.Process(int(each)) for each in numbers]
        processes = [*parents, *(child for parent in parents for child in parent.children(recursive=True))]
        client.send_signal(number)
        _, alive = psutil.wait_procs(processes, timeout=30)
        assert not alive


@pytest.mark.parametrize("which", [0, 1])
def test_a_master_or_agent_that_is_killed_is_replaced_and_nothing_is_lost(
    which: int, caplog: pytest.LogCaptureFixture
) -> None:
    with Pool(workers=2) as pool:
        results = pool.map(lambda x: __import__("time").sleep(0.005) or x, range(400))
        assert next(results) == 0
        os.kill(pids(pool)[which], signal.SIGKILL)
        assert list(results) == list(range(1, 400))
        report = pool.last_report
    assert report is not None
    assert report.tasks == 400
    assert f"the pool's {('master', 'worker')[which]} ended (killed by SIGKILL)" in caplog.text


def test_half_written_files_of_a_killed_agent_are_removed() -> None:
    with Pool(workers=1) as pool:
        assert pool.submit(abs, -1).result() == 1
        agent, cluster = pids(pool)[1], pool._lifetime.cluster
        assert cluster is not None
        draft = Path(cluster.data) / f"{UPLOAD}{agent}-x"
        draft.write_bytes(b"half")
        os.kill(agent, signal.SIGKILL)
        assert pool.submit(abs, -1).result() == 1
        assert not draft.exists()


def test_a_master_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cloudpar._local.programs.socket.create_server", lambda *_, **__: NoSocket())
    text = r"that this pool started keeps dying \(exit status 1\)\. Its last lines:\ncloudpar master: .* non-socket"
    with Pool(workers=1) as pool, pytest.raises(LocalClusterFailed, match=text):
        pool.submit(abs, 1).result(60)


def test_a_call_that_is_too_large_is_refused() -> None:
    with Pool(workers=1, progress=False) as pool:
        assert pool.submit(abs, -1).result() == 1
        cluster = pool._lifetime.cluster
        assert cluster is not None
        channel = Channel(cluster.endpoint, cluster.token, PayloadFolder(cluster.data))
        with closing(channel), pytest.raises(TooLarge, match="a body of over"):
            channel.call(routes.HELLO, bytes(BODY_BYTES + 1_000_000), Timeouts(30, 30))


def test_calls_need_no_http_once_the_master_has_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def post(*_: object) -> None:
        raise AssertionError("a call by HTTP")

    with Pool(workers=1, progress=False) as pool:
        for _ in range(2):
            assert pool.submit(abs, -1).result() == 1
            with monkeypatch.context() as patch:
                patch.setattr(ConnectionPool, "post", post)
                assert list(pool.map(abs, [-1, -2])) == [1, 2]
            os.kill(pids(pool)[0], signal.SIGKILL)


def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such paths of temporary folders exist on macOS. The calls use HTTP then."""
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with Pool(workers=1, progress=False) as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
        assert not Path(PayloadFolder(pool._lifetime.cluster.data).socket).exists()  # type: ignore[union-attr]


def test_large_data_of_the_first_map_waits_for_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def popen(command: list[str], **more: Any) -> "subprocess.Popen[bytes]":
        if not started:  # the master, on a busy machine
            command = ["sh", "-c", 'sleep 2; exec "$@"', "sh", *command]
        started.append(Popen(command, **more))
        return started[-1]

    Popen = subprocess.Popen  # noqa: N806 - a class
    monkeypatch.setattr(subprocess, "Popen", popen)
    with Pool(workers=1, progress=False) as pool:
        assert list(pool.map(len, [bytes(5_000_000)] * 3)) == [5_000_000] * 3


def test_a_pool_whose_temporary_folder_is_removed_says_so_instead_of_waiting() -> None:
    with Pool(workers=1) as pool:
        assert pool.submit(abs, -1).result() == 1
        assert pool._lifetime.cluster is not None
        shutil.rmtree(pool._lifetime.cluster.folder)
        os.kill(pids(pool)[0], signal.SIGKILL)
        with pytest.raises(LocalClusterFailed, match=r"(?s)keeps dying.*\(it left no log\)"):
            pool.submit(abs, -1).result()


def test_a_cluster_whose_agent_cannot_start_leaves_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    masters: list[subprocess.Popen[bytes]] = []

    def popen(command: list[str], **more: Any) -> "subprocess.Popen[bytes]":
        if masters:
            raise BlockingIOError("no more processes")
        masters.append(Popen(command, **more))
        return masters[0]

    Popen = subprocess.Popen  # noqa: N806 - a class
    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(BlockingIOError):
        Pool(workers=1)
    assert masters[0].poll() is not None


class NoSocket:
    """Stands in for a listening socket, but is none."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()

    def fileno(self) -> int:
        return self._reader

    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)


def test_cancel_stops_a_running_task(embedded: Pool, tmp_path: Path) -> None:
    future = embedded.submit(touch_and_wait, str(tmp_path / "up"))
    await_file(tmp_path / "up")
    assert future.cancel()
    assert future.cancelled()
    assert embedded.submit(abs, -1).result(60) == 1


def test_shutdown_lets_running_tasks_finish(tmp_path: Path) -> None:
    pool = Pool(workers=1)
    up, go = tmp_path / "up", tmp_path / "go"

    def wait() -> str:
        up.touch()
        while not go.exists():
            time.sleep(0.01)
        return "finished"

    first = pool.submit(wait)
    await_file(up)
    others = [pool.submit(abs, -number) for number in range(10)]
    threading.Timer(0.3, go.touch).start()
    pool.shutdown(cancel_futures=True)
    assert first.result() == "finished"
    assert all(future.done() for future in others)
    assert any(future.cancelled() for future in others)


def test_a_crash_is_an_error_of_its_task_alone(embedded: Pool) -> None:
    results = embedded.map(lambda x: os._exit(3) if x == 2 else x, range(5))
    values: list[object] = []
    for _ in range(5):
        try:
            values.append(next(results))
        except ExecutorCrashed as error:
            values.append(type(error))
    assert values == [0, 1, ExecutorCrashed, 3, 4]


def kill_worker() -> None:
    """Kill the worker from inside a task, so that the task has no end."""
    end_agent()
    threading.Event().wait(600)


def test_tasks_that_take_their_worker_along_harm_only_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many do at once: each is lost, with the reason, and all others have their results."""
    monkeypatch.setattr("cloudpar._local.programs.Child", hurried)
    deadly = {0, 1}
    with Pool(workers=2) as pool:
        results = pool.map(lambda x: kill_worker() if x in deadly else x, range(8), chunksize=2)
        ends = [end(results) for _ in range(8)]
    lost = [number for number, value in enumerate(ends) if isinstance(value, TaskLost)]
    assert lost == sorted(deadly)
    assert all("lost 4 times" in str(ends[number]) for number in deadly)
    assert all(value == number for number, value in enumerate(ends) if number not in deadly)


def end(results: Iterator[object]) -> object:
    """Return the next value, or the exception that is raised instead."""
    try:
        return next(results)
    except TaskLost as error:
        return error


def hurried(name: str, command: list[str], configuration: dict[str, object], report: Report, **more: Any) -> Child:
    """A master that waits for a silent worker no longer than a second."""
    settings = {"settings": {"lease_s": 1.0}} if name == "master" else {}
    return Child(name, command, configuration | settings, report, **more)


def test_notes_stay_on_an_exception_that_is_rebuilt_without_them(embedded: Pool) -> None:
    class Rebuilt(Exception):
        def __reduce__(self) -> Any:
            return type(self), self.args

    def fail() -> None:
        error = Rebuilt("text")
        error.add_note("look here")
        raise error

    with pytest.raises(Rebuilt, match="text") as caught:
        embedded.submit(fail).result(60)
    assert caught.value.__notes__[0] == "look here"


def test_output_of_tasks_is_printed_with_their_indexes(capsys: pytest.CaptureFixture[str]) -> None:
    with Pool(workers=1) as pool:
        list(pool.map(lambda x: print("says", x), range(2)))
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] says 0", "[1] says 1"]


def test_a_value_of_fifty_megabytes_travels_both_ways(embedded: Pool) -> None:
    values = [bytes([number]) * 5_000_000 for number in range(10)]
    assert list(embedded.map(lambda value: value, values)) == values


def test_data_of_any_size_keeps_its_order(embedded: Pool) -> None:
    values = [bytes([number % 256]) * (number * 300) for number in range(300)]
    assert list(embedded.map(lambda value: value, values)) == values


SCRIPT = """
from helper import scaled
from cloudpar import Pool

class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

def swapped(pair):
    import helper
    return Pair(pair.b, helper.scaled(pair.a))

pool = Pool(workers=2)
print(list(pool.map(scaled, [1, 2])))
pair = pool.submit(swapped, Pair(1, 2)).result()
print(type(pair) is Pair, pair.a, pair.b)
"""


def test_a_script_without_a_main_guard_and_with_a_module_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("FACTOR = 10\ndef scaled(x):\n    return x * FACTOR\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[10, 20]\nTrue 2 10\n", "")


def test_a_pool_works_beside_a_process_pool_executor(embedded: Pool) -> None:
    """ProcessPoolExecutor forks this process while it has a pool; neither disturbs the other."""
    with cf.ProcessPoolExecutor(1) as other:
        assert other.submit(abs, -1).result(60) == 1
    assert embedded.submit(abs, -2).result(60) == 2


WAITING_SCRIPT = """
import concurrent.futures, sys, threading
from pathlib import Path
from cloudpar import Pool
pool = Pool(workers=1)
def wait(path):
    Path(path).touch()
    threading.Event().wait(600)
future = pool.submit(wait, sys.argv[1])
"""


@pytest.mark.parametrize(
    "line",
    [
        "concurrent.futures.wait([future])",
        "threading.Event().wait()",
        "results = pool.map(wait, sys.argv[1:]); threading.Event().wait()",
        "list(pool.map(wait, sys.argv[1:]))",
        "with pool: list(pool.map(wait, sys.argv[1:]))",
    ],
)
def test_ctrl_c_in_a_script_cancels_and_prints_the_charge(tmp_path: Path, line: str) -> None:
    code, errors = interrupted(tmp_path / "up", WAITING_SCRIPT + line)
    assert "cloudpar: cancelled" in errors
    assert "s of execution time were charged" in errors
    assert errors.count("Traceback") == 1
    assert code != 0


def test_ctrl_c_at_exit_cancels_the_tasks_that_the_exit_waits_for(tmp_path: Path) -> None:
    at_exit = "import atexit; atexit.register(Path(sys.argv[1] + '-exit').touch)"
    code, errors = interrupted(tmp_path / "up", WAITING_SCRIPT + at_exit, tmp_path / "up-exit")
    assert code == -signal.SIGINT
    assert re.fullmatch(r"cloudpar: cancelled package \w+; \d+\.\d{3} s of execution time were charged\n", errors)


def interrupted(path: Path, script: str, *more: Path) -> tuple[int, str]:
    """Press Ctrl-C in a script once its task runs; return its exit status and its standard error."""
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stderr=subprocess.PIPE, text=True) as client:
        for each in (path, *more):
            await_file(each)
        client.send_signal(signal.SIGINT)
        _, errors = client.communicate(timeout=50)
    return client.returncode, errors


def test_memory_mb_is_the_limit_of_each_executor() -> None:
    def grow(_number: int) -> None:
        held = bytearray()
        while True:
            held += bytearray(10**6)

    with (
        Pool(workers=2, memory_mb=230) as pool,
        pytest.raises(ExecutorOutOfMemory, match="over its limit of 230 MB"),
    ):
        pool.submit(grow, 0).result()


def test_a_pool_gets_links_to_files_from_its_own_master() -> None:
    with Pool(workers=1) as pool:
        cluster = pool._lifetime.cluster
        assert cluster is not None
        asking = Connection(cluster.endpoint, cluster.token, RetryPolicy(60.0), PayloadFolder(cluster.data))
        uploads = [Upload(kind="data", size=1, crc32=NOT_CHECKED)]
        (prepared,) = asking.call(routes.PREPARE_UPLOADS, PrepareUploads(uploads=uploads)).uploads
        asking.close()
        assert prepared.link is not None
        assert prepared.link.url.startswith(f"file://{cluster.data}/")


def test_code_with_large_captured_values_is_bounded_on_disk_and_in_executors() -> None:
    size, runs = 48 * MEGABYTE, 8
    with Pool(workers=1) as pool:
        cluster = pool._lifetime.cluster
        assert cluster is not None
        for number in range(runs):
            captured = bytes([number]) * size
            assert list(pool.map(lambda i: captured[i], range(2))) == [number, number]  # noqa: B023 - mapped at once
        executors = psutil.Process(pids(pool)[1]).children(recursive=True)
        held = max(executor.memory_info().rss for executor in executors)
        deadline = time.monotonic() + 60
        while sum(path.stat().st_size for path in cluster.folder.glob("data/blobs/code/*/*.blob")) > KEPT_BYTES:
            assert time.monotonic() < deadline, "the master has not removed old code"
            threading.Event().wait(0.01)
    assert held < CACHED_BYTES + 3 * size  # the pickle and copies of the last function, and the executor itself
