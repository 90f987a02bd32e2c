"""Workers of different sizes join and leave while a client reads a map."""

import signal
from contextlib import ExitStack
from pathlib import Path

from cli.operation import Up, worker
from system.books import Customer, close_books, progress
from system.work import HANG_S, await_file, mark_and_wait, ten_milliseconds, until


def test_workers_join_and_leave_during_a_map(folder: Path) -> None:
    tasks = 600
    with Up(folder, workers=0) as up:
        customer = Customer(up, "patient")
        with customer.pool() as pool, ExitStack() as fleet:
            results = pool.map(ten_milliseconds, range(tasks))
            package_id = results.package_id
            assert package_id is not None
            first = fleet.enter_context(worker(up, executors=1))
            found = [next(results)]
            fleet.enter_context(worker(up, executors=3))
            until(lambda: progress(up, customer.token, package_id).executors >= 4)
            first.send_signal(signal.SIGTERM)
            assert first.wait(HANG_S) == 0
            found.append(next(results))
            fleet.enter_context(worker(up, executors=2))
            books = close_books(up, customer.token, package_id)
            found += results
        assert found == list(range(tasks))
        customer.assert_charged_once(books, tasks)


def test_a_worker_that_is_asked_to_leave_finishes_what_runs(folder: Path, tmp_path: Path) -> None:
    running, gate = tmp_path / "running", tmp_path / "gate"
    jobs = [(str(running), str(gate)), *((str(tmp_path / str(number)), str(gate)) for number in range(20))]
    with Up(folder, workers=0) as up:
        customer = Customer(up, "patient")
        with customer.pool() as pool, ExitStack() as fleet:
            results = pool.map(mark_and_wait, jobs)
            leaving = fleet.enter_context(worker(up, executors=1))
            await_file(running)
            leaving.send_signal(signal.SIGTERM)
            fleet.enter_context(worker(up, executors=2))  # takes the tasks that the leaving worker gave back
            fleet.callback(gate.touch)
            until(lambda: len(list(tmp_path.glob("[0-9]*"))) >= 2)
            gate.touch()
            assert leaving.wait(HANG_S) == 0
            assert results.package_id is not None
            books = close_books(up, customer.token, results.package_id)
            assert list(results) == ["done"] * len(jobs)
        customer.assert_charged_once(books, len(jobs))
