"""A worker whose tasks may do what its user may runs only tasks of that user: those of the default account."""

from collections.abc import Callable
from concurrent import futures
from pathlib import Path

import pytest

from cloudpar import Pool
from support.command import cloudpar_json
from support.up import Up, worker


@pytest.mark.parametrize("kind", ["up", "worker"])
def test_a_new_account_cannot_read_the_files_of_the_operator(folder: Path, kind: str) -> None:
    def stolen() -> str:
        return (folder / "connection.json").read_text()

    with Up(folder, workers=1 if kind == "up" else 0, isolation=None) as up:
        made = cloudpar_json("account", "create", "guest", "--hours", "1", *up.admin())
        with Pool(up.endpoint, made["token"], progress=False) as guests, up.pool() as pool:
            if kind == "worker":
                with worker(up, 1, "--isolation", "own"):
                    assert "admin_token" in pool.submit(stolen).result()
                    _assert_waits(guests, stolen)
            else:
                assert "admin_token" in pool.submit(stolen).result()
                _assert_waits(guests, stolen)


def _assert_waits(guests: Pool, stolen: Callable[[], str]) -> None:
    waiting = guests.submit(stolen)
    with pytest.raises(futures.TimeoutError):
        waiting.result(timeout=2)
    waiting.cancel()


def test_isolation_none_runs_tasks_of_all_accounts(folder: Path) -> None:
    with Up(folder, workers=1, isolation="none") as up:
        made = cloudpar_json("account", "create", "guest", "--hours", "1", *up.admin())
        with Pool(up.endpoint, made["token"], progress=False) as guests:
            assert guests.submit(abs, -1).result() == 1
