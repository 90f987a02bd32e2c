from collections.abc import Iterable

from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore

from .steps import Steps

LISTED = 50
"""How many packages one step of a list contains."""


def listed(packages: PackageStore, account_id: str | None, limit: int) -> Steps[list[Head]]:
    """Return the packages of an account (None: of all accounts), newest first, at most `limit`. Reads them in steps.

    If there are more packages, running ones are kept before ended ones: otherwise many short packages would hide an
    older one that still runs. If an account has more than `limit` running packages, only the newest ones are read,
    because each head that is read costs money.
    """
    found = yield from _read(packages.of_account(account_id, limit))
    if len(found) < limit:
        return found
    running = yield from _read(_running(packages, account_id, limit))
    known = {head.package_id: head for head in [*running, *found]}
    kept = sorted(known.values(), key=lambda head: (head.life.ended, -head.started_at))[:limit]
    return sorted(kept, key=lambda head: -head.started_at)


def _read(found: Iterable[Head]) -> Steps[list[Head]]:
    heads: list[Head] = []
    for head in found:
        heads.append(head)
        if len(heads) % LISTED == 0:
            yield
    return heads


def _running(packages: PackageStore, account_id: str | None, limit: int) -> Iterable[Head]:
    if account_id is None:
        return packages.at_work(limit).heads
    if packages.running(account_id).packages > limit:
        return []
    return packages.running_heads(account_id)
