"""Workers that cannot run every task: tasks go to workers that can, and the client reports the others."""

import logging
import platform
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cloudpar._client import orders
from cloudpar.errors import PythonMismatch
from support.command import cloudpar_json
from support.running_agent import RunningAgent
from support.up import Up, worker
from support.waiting import until

LIBRARY = "only_at_one_worker"
OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
TASKS = 20


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Make a library that this client sees as installed; it is in the folder `library`, too."""
    text = "def double(x):\n    return 2 * x\n"
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / f"{LIBRARY}.py").write_text(text)
    module = ModuleType(LIBRARY)
    exec(text, vars(module))
    monkeypatch.setattr(module, "__file__", str(Path(pytest.__file__)), raising=False)  # as if it were installed
    monkeypatch.setitem(sys.modules, LIBRARY, module)
    return module


def by_import(x: int) -> int:
    """Import the library in the task."""
    import only_at_one_worker  # type: ignore[import-not-found]

    return int(only_at_one_worker.double(x))


def catches(x: int) -> int:
    """Catch the missing library's error."""
    try:
        return by_import(x)
    except ImportError:
        return 2 * x


class Payload:
    """Task data whose unpickling needs the library."""

    def __init__(self, x: int) -> None:
        self.x = x

    def __reduce__(self) -> Any:
        return sys.modules[LIBRARY].double, (self.x,)


def same(x: int) -> int:
    return x


@contextmanager
def one_with_the_library(up: Up, tmp_path: Path) -> Iterator[None]:
    """Start two workers, of which one lacks the library."""
    with worker(up, 2), worker(up, 1, PYTHONPATH=str(tmp_path / "library")):
        yield


def jobs(library: ModuleType) -> list[tuple[Callable[[Any], int], list[Any]]]:
    """Return jobs that need the library for unpickling the code, for unpickling the data, or in the task itself."""
    return [
        (library.double, list(range(TASKS))),
        (same, [Payload(x) for x in range(TASKS)]),
        (by_import, list(range(TASKS))),
    ]


def test_tasks_go_to_the_worker_that_has_their_module(
    folder: Path, tmp_path: Path, library: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    with Up(folder, workers=0) as up, one_with_the_library(up, tmp_path), up.pool() as pool:
        for function, values in jobs(library):
            caplog.clear()
            for _ in range(20):
                assert list(pool.map(function, values, retries=3)) == [2 * x for x in range(TASKS)]
                if "cannot run package" in caplog.text:
                    break
            assert f"(no module named '{LIBRARY}') and leaves it to workers that can" in caplog.text


def test_a_task_that_catches_the_error_runs_on_every_worker(
    folder: Path, library: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    with Up(folder, workers=0) as up, worker(up, 1), up.pool() as pool:
        assert list(pool.map(catches, range(TASKS))) == [2 * x for x in range(TASKS)]
    assert caplog.text == ""


def test_a_module_that_no_worker_has_is_the_tasks_own_error(folder: Path, library: ModuleType) -> None:
    with Up(folder, workers=0) as up, worker(up, 1), worker(up, 1), up.pool() as pool:
        for function, values in jobs(library):
            with pytest.raises(ModuleNotFoundError, match=LIBRARY):
                list(pool.map(function, values, retries=3))
        with pytest.raises(ModuleNotFoundError) as caught:
            pool.submit(library.double, 1).result()
        assert any(f"Install {LIBRARY!r} at the worker" in note for note in caught.value.__notes__)


def test_clients_of_two_pythons_share_workers_of_one_and_of_both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second worker has an interpreter that is named like another version."""
    with Up(folder, workers=0) as up, worker(up, 1), ExitStack() as stack:
        other = RunningAgent(
            up.endpoint, executors=1, token=up.connection["worker_token"], pythons={"3.99": sys.executable}
        )
        stack.callback(other.close)
        other.wait_until_ready()

        def maps(python: str) -> None:
            with up.pool() as pool:
                for _ in range(20):
                    assert list(pool.map(abs, range(-5, 0))) == [5, 4, 3, 2, 1], python

        for python in (OURS, "3.99"):
            monkeypatch.setattr(orders, "PYTHON", python)
            maps(python)


def test_the_error_about_python_waits_for_a_worker_that_fits(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(orders, "PYTHON", "3.99")
    with Up(folder, workers=0) as up, worker(up, 1), up.pool() as pool, ThreadPoolExecutor(1) as waiting:
        results = waiting.submit(lambda: list(pool.map(abs, [-1, -2])))
        with pytest.raises(
            PythonMismatch, match=rf"Python 3\.99, and no connected .* has Python {OURS}.*use Python {OURS}"
        ):
            results.result()
    assert f"which need Python 3.99 ({platform.node()}: only Python {OURS})" in caplog.text


def test_a_pool_without_workers_says_so_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    with Up(folder, workers=0) as up, up.pool() as pool, ExitStack() as stack:
        result = pool.submit(abs, -1)
        until(lambda: "no worker is connected" in caplog.text)
        with pytest.raises(TimeoutError):
            result.result(timeout=1)
        assert caplog.text.count("no worker is connected") == 1
        assert f"cloudpar worker --endpoint {up.endpoint}" in caplog.text
        stack.enter_context(worker(up, 1))
        assert result.result(timeout=60) == 1
        assert caplog.text.count("no worker is connected") == 1


def test_a_pool_whose_worker_drained_says_that_no_worker_is_connected(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    with Up(folder, workers=0) as up, up.pool() as pool:
        with worker(up, 1):
            assert pool.submit(abs, -1).result(timeout=60) == 1
            assert [each["executors"] for each in cloudpar_json("workers", "--data", str(folder))["workers"]] == [1]
        assert cloudpar_json("workers", "--data", str(folder))["workers"] == []
        result = pool.submit(abs, -1)
        until(lambda: "no worker is connected" in caplog.text)
        with worker(up, 1):
            assert result.result(timeout=60) == 1
