"""A revoked token is refused within a minute, also by a function that had just used it."""

from collections.abc import Callable
from pathlib import Path

from aws.stores import on_moto
from cloudpar_master.ports import AccountRecord
from support.clock import SetClock


def test_g19_revoked_within_a_minute_by_warm_functions(tmp_path: Path, reached: Callable[[str], None]) -> None:
    clock = SetClock()
    with on_moto(tmp_path, clock) as warm, on_moto(tmp_path, clock) as other:
        warm.accounts.create(AccountRecord("a", "ann", "h" * 64, "active", 10**12, 0, 0, 0.0))
        since_s, good = 0, warm.accounts.by_token("h" * 64)
        assert good is not None
        assert good.state == "active"
        other.accounts.revoke("a")
        while (found := warm.accounts.by_token("h" * 64)) is not None and found.state == "active":
            clock.move(1.0)
            since_s += 1
            assert since_s <= 60
        assert found is not None
        assert found.state == "revoked"
    reached(f"revoked after {since_s} s at the latest")
