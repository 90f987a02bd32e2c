"""The whole demo with small figures."""

import json
from pathlib import Path

from support.command import cloudpar


def test_the_demo_measures_everything_and_prints_one_object(tmp_path: Path) -> None:
    plot = tmp_path / "demo.png"
    ended = cloudpar("demo", "--tasks", "12", "--repeats", "1", "--largest", "20000", "--plot", str(plot), "--json")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("\n") == 1
    summary = json.loads(ended.stdout)
    assert (summary["tasks"], summary["results_correct"], summary["largest_prime"]) == (12, True, 20_000)
    assert [run["executors"] for run in summary["runs"]] == [1, 2, 4]
    assert all(0 < run["efficiency"] <= 1 for run in summary["runs"])
    assert set(summary["points_s"]) == {"serialize", "retrieve", "execute", "publish", "deserialize", "await"}
    # The duration of a publication is known only after it was sent, and so small a package may have only one.
    assert all(value > 0 or point == "publish" for point, value in summary["points_s"].items())
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_the_demo_ignores_a_configured_master() -> None:
    ended = cloudpar(
        "demo", "--tasks", "2", "--repeats", "1", "--largest", "1000",
        CLOUDPAR_ENDPOINT="http://127.0.0.1:1", CLOUDPAR_TOKEN="unknown",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "ProcessPoolExecutor(2)" in ended.stdout
