"""bench/peers/taps_runs: what TaPS prints becomes a duration or a reason, and the exit code is the pool's."""

import re
import sys

import pytest
from bench.peers import engines, taps_runs
from bench.peers.measurement import Failed
from click.testing import CliRunner

from docs.pages import ROOT

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
GOOD = "print('[2026-01-01 12:00:00.000] RUN   (taps.run) > Finished app (elapsed=1.250s)')"
BAD = """
print("RUN   (taps.run) > Running app...")
print("Traceback (most recent call last):\\n  File ...\\nnumpy.linalg.LinAlgError: not positive definite")
print("a line after it")
raise SystemExit(1)
"""


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_the_duration_is_the_one_that_taps_prints_for_the_application() -> None:
    assert taps_runs.seconds(python(GOOD), 60) == 1.25


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (BAD, "exit code 1, no result: numpy.linalg.LinAlgError: not positive definite"),
        ("import taps_is_missing", "exit code 1, no result: ModuleNotFoundError: No module named 'taps_is_missing'"),
        ("import sys; sys.exit('error: no such option')", "exit code 1, no result: error: no such option"),
        ("pass", "exit code 0, no result: it printed nothing"),
        (f"{GOOD}; raise SystemExit(3)", "exit code 3, after its result: it printed nothing"),
    ],
)
def test_an_application_that_does_not_finish_has_a_reason(script: str, reason: str) -> None:
    with pytest.raises(Failed) as failed:
        taps_runs.seconds(python(script), 60)
    assert str(failed.value) == reason


@LINUX
def test_an_application_that_hangs_is_ended() -> None:
    with pytest.raises(Failed, match=r"no result after 0.1 s"):
        taps_runs.seconds(python("import time; time.sleep(60)"), 0.1)


@pytest.mark.parametrize(("bad", "code"), [("cloudpar", 1), ("ray", 0)])
def test_the_exit_code_says_whether_the_pool_failed(bad: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taps_runs, "command", lambda executor, _: python(BAD if executor == bad else GOOD))
    ended = CliRunner().invoke(taps_runs.main, [])
    assert ended.exit_code == code
    expected = dict.fromkeys(taps_runs.WORKERS_OPTION, "1.25 s")
    expected[bad] = "failed: exit code 1, no result: numpy.linalg.LinAlgError: not positive definite"
    assert ended.output.splitlines() == [f"{name}: {said}" for name, said in expected.items()]


def test_each_executor_gets_two_processes_and_the_application_that_was_chosen() -> None:
    options = {
        "cloudpar": "--engine.executor.workers", "process-pool": "--engine.executor.max-processes",
        "dask": "--engine.executor.workers", "ray": "--engine.executor.num-cpus",
    }  # fmt: skip
    for executor, option in options.items():
        line = " ".join(taps_runs.command(executor, ("--app", "synthetic")))
        assert f" -m bench.peers.taps --app synthetic --engine.executor {executor} {option} 2 " in line
    assert "--app cholesky" in " ".join(taps_runs.command("ray", ()))
    assert set(taps_runs.WORKERS_OPTION) <= set(engines.NAMES)


def test_make_passes_the_whole_path_of_the_clone_and_the_options() -> None:
    """uv would take a path without a slash for the name of a package."""
    recipe = re.search(r"^bench-taps:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    assert recipe[1].count("$(TAPS)") == recipe[1].count('"$(abspath $(TAPS))') == 2
    assert "taps_runs $(OPTIONS) -- $(TAPS_APP)" in recipe[1]
