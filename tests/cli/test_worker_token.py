"""`cloudpar worker-token`: a token for one worker."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from cloudpar_protocol.tokens import has_checksum
from support.command import cloudpar, cloudpar_json
from support.up import Up, worker
from support.waiting import HANG_S


def test_a_worker_runs_with_its_own_token_until_this_is_revoked(tmp_path: Path) -> None:
    with Up(tmp_path / "data", workers=0, more=["--set", "lease_s=1"]) as up:
        made = cloudpar_json("worker-token", "create", "lab-3", "--expires", "2d", *up.admin())
        assert has_checksum(made["token"])
        connection = {**up.connection, "worker_token": made["token"]}
        site: Any = SimpleNamespace(endpoint=up.endpoint, connection=connection)
        with worker(site) as process, up.pool() as pool:
            assert list(pool.map(abs, [-1])) == [1]
            listed = cloudpar("worker-token", *up.admin()).stdout
            assert re.search(r"lab-3\s+active\s+\d{4}-\d\d-\d\d \d\d:\d\d UTC", listed)
            revoked = cloudpar("worker-token", "revoke", "lab-3", *up.admin())
            assert "revoked" in revoked.stdout
            task = pool.submit(abs, -2)  # ends the request that the worker holds, otherwise after up to 20 s
            assert process.wait(HANG_S) == 3
            with worker(up):
                assert task.result(HANG_S) == 2
        assert "lab-3" not in cloudpar("account", "list", *up.admin()).stdout


def test_a_token_that_would_have_expired_already_is_refused(tmp_path: Path) -> None:
    refused = cloudpar("worker-token", "create", "x", "--expires", "0s", "--endpoint", "http://h", "--admin-token", "t")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "give a positive span" in refused.stderr
