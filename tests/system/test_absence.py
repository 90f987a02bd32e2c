"""Clients and workers wait for a master that does not answer, and say so; processes of a killed client end with it."""

import logging
import signal
from pathlib import Path

import psutil
import pytest
from bench.ending import end_s

from cloudpar._client import awaiter, connection
from cloudpar.demo.factorization import correct
from support.books import close_books
from support.customer import Customer
from support.task_functions import NUMBERS, TASKS, factorize_before_gate, main_job
from support.up import Up
from support.waiting import HANG_S, until


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "cloudpar")
    return caplog


def await_warning(warnings: pytest.LogCaptureFixture, text: str) -> None:
    until(lambda: any(text in record.getMessage() for record in list(warnings.records)))


def test_clients_wait_for_a_master_that_is_frozen(
    folder: Path, tmp_path: Path, warnings: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "ANSWER_S", 0.2)
    monkeypatch.setattr(awaiter, "HOLD_S", 0.2)
    gate = tmp_path / "gate"
    with Up(folder, workers=2) as up:
        customer = Customer(up, "patient")
        with customer.pool() as pool:
            results = pool.map(factorize_before_gate, main_job(gate))
            found = [next(results)]
            master = up.child("cloudpar_master")
            master.send_signal(signal.SIGSTOP)
            gate.touch()
            await_warning(warnings, "does not answer (timed out)")
            master.send_signal(signal.SIGCONT)
            found += results
            await_warning(warnings, "is back after")
            assert results.package_id is not None
        assert correct(NUMBERS, found)


def test_a_map_completes_after_all_processes_were_killed(
    folder: Path, tmp_path: Path, warnings: pytest.LogCaptureFixture
) -> None:
    gate = tmp_path / "gate"
    with Up(folder, workers=2) as up:
        customer = Customer(up, "patient")
        pool = customer.pool()
        results = pool.map(factorize_before_gate, main_job(gate))
        found = [next(results)]
        family = psutil.Process(up.process.pid).children(recursive=True)
        up.process.kill()
        _, alive = psutil.wait_procs(family, timeout=HANG_S)
        assert not alive
    gate.touch()
    await_warning(warnings, "does not answer")
    with Up(folder, workers=2, port=int(up.endpoint.rpartition(":")[2])) as again:
        assert again.connection == up.connection
        assert results.package_id is not None
        books = close_books(again, customer.token, results.package_id)
        found += results
        pool.shutdown()
        assert correct(NUMBERS, found)
        customer.assert_charged_once(books, TASKS)
    assert any("is back after" in record.getMessage() for record in warnings.records)


def test_a_client_that_is_killed_in_the_middle_of_a_map_leaves_nothing() -> None:
    end_s()  # fails if a process outlives its client
