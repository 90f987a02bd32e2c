"""Many concurrent callers on AWS's own engine, beyond the races of the ports' suites."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

from cloudpar_master.ports import AccountRecord
from support.clock import NOW
from support.stores import Stores

CALLERS = 64


def test_no_quota_stays_reserved_when_slices_race_with_the_end_of_their_package(real_tables: Stores) -> None:
    accounts = real_tables.accounts
    accounts.create(AccountRecord("a", "name", "hash", "active", 10_000, 0, 0, NOW))
    line = Barrier(CALLERS, timeout=60)

    def settle_or_reserve(package_id: str, caller: int) -> None:
        line.wait()
        if caller % 8 == 0:
            accounts.settle("a", package_id, 5)
        else:
            accounts.reserve("a", package_id, caller, 10)

    for number in range(4):
        with ThreadPoolExecutor(CALLERS) as threads:
            list(threads.map(partial(settle_or_reserve, f"p{number}"), range(CALLERS)))
    account = accounts.get("a")
    assert account is not None
    assert (account.spent_us, account.reserved_us) == (20, 0)
