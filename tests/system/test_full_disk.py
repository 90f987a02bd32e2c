"""A master whose disk is full for a while loses nothing, and its log stays readable."""

import re
import resource
from pathlib import Path

import psutil

from support.up import Up
from support.waiting import until

ROOM_BYTES = 500_000
"""How far each file of the master may grow: enough for a package to start, too little for its results."""

DATED = re.compile(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d cloudpar master: the master cannot read or write its data folder \(.*\)"
)


def test_results_arrive_once_there_is_room_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as errors, Up(tmp_path / "data", workers=2, errors=errors) as up:
        master = up.child("cloudpar_master")
        with up.pool() as pool:
            assert pool.submit(abs, -1).result() == 1
            largest = max(path.stat().st_size for path in up.folder.iterdir() if path.is_file())
            _, hard = master.rlimit(psutil.RLIMIT_FSIZE)
            master.rlimit(psutil.RLIMIT_FSIZE, (largest + ROOM_BYTES, hard))
            results = pool.map(bytes, [20_000] * 400)
            until(lambda: "cannot read or write" in log.read_text())
            master.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard))
            assert sum(map(len, results)) == 400 * 20_000
            uploaded = bytes(500_000)
            assert list(pool.map(len, [uploaded] * 4)) == [500_000] * 4
    lines = [line for line in log.read_text().splitlines() if "cloudpar master:" in line]
    assert len(lines) == 1
    assert DATED.match(lines[0])
    assert "Traceback" not in log.read_text()
