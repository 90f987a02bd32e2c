"""bench/peers: each workload runs, and engines that fail or hang are reported and ended."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
from bench.peers import engines, measurement, outcomes, processes, rows
from bench.peers.__main__ import main
from bench.peers.engine import Engine
from bench.peers.engines.pool import pool
from bench.peers.outcomes import left_out
from bench.peers.rows import ROWS, Load, Row
from bench.peers.workloads import memory
from click.testing import CliRunner

from support.waiting import HANG_S, until

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc and subreapers")
MISSING = "lithops"


def tiny(row: Row) -> Load:
    """A part of a row's work that takes some milliseconds."""
    return Load(min(row.load.tasks, 4), min(row.load.size_bytes, 80_000), row.load.task_ms and 1)


@pytest.fixture(scope="module")
def ours() -> Iterator[Engine]:
    with pool(None) as engine:
        yield engine


@LINUX
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_workload_runs_on_the_pool_and_gives_its_figures(
    row: Row, ours: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "REPEATS_FOR_S", 0.0)

    def start(array: Any) -> AbstractContextManager[Engine]:
        return nullcontext(ours) if array is None else pool(array)

    found = row.run(start, tiny(row))
    assert sorted(found) == sorted(figure.name for figure in row.figures)
    assert all(value > 0 for value in found.values())


@LINUX
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_workload_runs_on_a_process_pool_in_a_process_of_its_own(row: Row) -> None:
    found = measurement.measure("process-pool", row.name, tiny(row), timeout_s=60)
    assert sorted(found) == sorted(figure.name for figure in row.figures)


def test_a_peak_of_too_few_samples_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = threading.Event()

    def hidden(_: int) -> int:
        failed.set()
        raise PermissionError("hidden")

    monkeypatch.setattr(memory, "pss_bytes", hidden)
    with pytest.raises(PermissionError, match="hidden"), memory.Peak():
        assert failed.wait(HANG_S)


@LINUX
def test_a_process_that_hides_its_memory_is_an_error_which_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(processes, "descendants", lambda _: [])
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(PermissionError, match=rf"process {os.getpid()} hides its memory.* Fix: measure as root"):
        processes.pss_bytes(os.getpid())


def test_memory_is_measured_only_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "LINUX", False)
    pool = engines.BY_NAME["cloudpar"]
    without = [row.name for row in ROWS if "only Linux" in left_out(pool, row)]
    assert without == ["shared", "memory"]


HANGING = """
import subprocess, sys, time
from pathlib import Path
from bench.peers.processes import adopt_orphans
adopt_orphans()
start = "import subprocess; print(subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=2).pid)"
orphan = subprocess.run([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True).stdout
Path(sys.argv[1]).write_text(orphan)
time.sleep(60)
"""


@LINUX
def test_a_measurement_that_hangs_is_ended_with_the_processes_that_have_lost_their_parent(tmp_path: Path) -> None:
    started = tmp_path / "started"
    environment = measurement.environment(tmp_path)
    hanging = subprocess.Popen([sys.executable, "-c", HANGING, str(started)], env=environment)
    until(lambda: started.exists() and bool(started.read_text().strip()))
    orphan = psutil.Process(int(started.read_text()))
    measurement.end(hanging)
    assert hanging.returncode < 0
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


@LINUX
def test_a_measurement_that_takes_too_long_says_so() -> None:
    with pytest.raises(measurement.Failed, match=r"no result after 0.01 s"):
        measurement.measure("process-pool", "start", Load(), timeout_s=0.01)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_measurement_gets_the_whole_load_of_its_row(row: Row) -> None:
    assert Load.from_arguments(row.load.as_arguments()) == row.load


def test_an_engine_is_left_out_of_rows_with_too_many_tasks_for_it() -> None:
    million = rows.BY_NAME["no-ops-1000000"]
    assert not left_out(engines.BY_NAME["cloudpar"], million)
    assert "up to 10,000" in left_out(engines.BY_NAME["dask"], million)
    assert left_out(engines.BY_NAME["parsl"], rows.BY_NAME["shared"])


@LINUX
@pytest.mark.skipif(find_spec(MISSING) is not None, reason="it tests what happens without this library")
def test_the_command_reports_an_engine_that_cannot_be_imported_and_measures_the_rest() -> None:
    command = [sys.executable, "-m", "bench.peers", "--json", "--rounds=2", "--scale=0.01", "--only=no-ops-100"]
    chosen = [f"--engines={name}" for name in (MISSING, "process-pool")]
    ended = subprocess.run(
        [*command, *chosen], cwd=measurement.ROOT, env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    assert set(said) == {"machine", "versions", "settings", "choices", "rows"}
    assert set(said["machine"]) == {"cores", "memory_bytes", "system", "python"}
    assert said["versions"]["numpy"]
    assert said["versions"][MISSING] is None
    assert said["rows"]["no-ops-100"]["load"] == {"tasks": 4, "size_bytes": 0, "task_ms": 0}
    found = said["rows"]["no-ops-100"]["engines"]
    assert found[MISSING]["error"] == f"ModuleNotFoundError: No module named '{MISSING}'"
    seconds = found["process-pool"]["figures"]["seconds"]
    assert len(seconds["samples"]) == 2
    assert min(seconds["samples"]) <= seconds["median"] <= max(seconds["samples"])
    assert f"{MISSING} -" in ended.stderr


@pytest.mark.parametrize(
    "option", ["--rounds=0", "--scale=0", "--scale=2", "--shared-mb=0", "--shared-mb=1074", "--timeout=0"]
)
def test_options_that_measure_nothing_or_more_than_the_pool_can_send_are_refused(option: str) -> None:
    ended = CliRunner().invoke(main, [option, "--only=start", "--engines=process-pool"])
    assert ended.exit_code == 2
    assert option.split("=", maxsplit=1)[0] in ended.output
