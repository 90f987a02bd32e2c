"""Accounts of the same name, which earlier releases allowed, in a data folder of today."""

from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.account_store import SqliteAccountStore
from cloudpar_master.adapters.embedded.database import Database
from cloudpar_protocol.errors import IdempotencyConflict
from master.conformance.test_accounts import make_account
from support.clock import SetClock


def test_accounts_of_the_same_name_stay_and_no_third_one_is_made(tmp_path: Path, clock: SetClock) -> None:
    database = Database(tmp_path / "db")
    accounts = SqliteAccountStore(database, clock)
    twins = [make_account(each)._replace(name="ann") for each in ("a", "b")]
    database.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [twin[:8] for twin in twins])
    assert accounts.list() == twins
    with pytest.raises(IdempotencyConflict, match="already"):
        accounts.create(make_account("c")._replace(name="ann"))
    accounts.revoke("a")
    with pytest.raises(IdempotencyConflict, match=r"already \(b\)"):
        accounts.create(make_account("c")._replace(name="ann"))
    database.close()
