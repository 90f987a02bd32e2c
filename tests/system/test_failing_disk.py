"""The disk of a master fails for a while: clients wait or get the reason, its log stays readable, nothing is lost."""

import os
import re
import sys
from pathlib import Path

import pytest

from cloudpar import Pool
from cloudpar.errors import Unavailable
from support.up import Up
from support.waiting import until
from system import failing_up

TESTS = Path(__file__).parents[1]
LINE = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d cloudpar master: the master cannot read or write its data folder "
    r"\(.*\): check its disk"
)


def test_results_arrive_once_a_failing_disk_works_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, broken = tmp_path / "log", tmp_path / "broken"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv(failing_up.BROKEN, str(broken))
    program = [sys.executable, "-P", "-m", "system.failing_up"]
    with log.open("w") as errors:
        up = Up(tmp_path / "data", workers=2, errors=errors, program=program)
    with up, up.pool() as pool, Pool(up.endpoint, up.connection["token"], patience_s=0.5, progress=False) as hasty:
        assert pool.submit(abs, -1).result() == hasty.submit(abs, -1).result() == 1
        results, large = pool.map(bytes, [1_000] * 200), pool.map(bytes, [2_000_000] * 2)
        broken.touch()
        with pytest.raises(Unavailable, match="check its disk"):
            hasty.submit(abs, -2).result()
        until(lambda: "cannot read or write" in log.read_text())
        broken.unlink()
        assert sum(map(len, results)) == 200 * 1_000
        assert [len(each) for each in large] == [2_000_000] * 2
    text = log.read_text()
    (line,) = [line for line in text.splitlines() if "cloudpar master:" in line]
    assert LINE.match(line)
    assert "Traceback" not in text
