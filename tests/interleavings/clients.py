"""What clients, operators, the timer and the clock do."""

import hashlib

from msgspec.structs import replace

from cloudpar_master.services.steps import finish
from cloudpar_protocol import ranges
from cloudpar_protocol.account_messages import GrantQuota, RevokeAccount
from cloudpar_protocol.client_messages import (
    Acknowledge,
    AwaitTasks,
    CancelTasks,
    Cursor,
    ListPackages,
    PackageStatus,
    StartTasks,
)
from cloudpar_protocol.payloads import Range, RangeData, TaskCode
from support.checks import hold

from .desk import Deed, Desk, Memory

CODE = TaskCode(hashlib.sha256(b"code").hexdigest(), b"code")
GONE = frozenset({"expired", "missing"})
"""What a client hears of a package that was deleted."""


def start(n: int = 2, chunksize: int = 1, depth: int = 0) -> Deed:
    """Start the actor's package."""

    def do(desk: Desk, memory: Memory) -> Memory:
        request = StartTasks(
            idempotency_key=desk.actor.key, n=n, code=CODE, data=RangeData(0, 1), python="3.11", chunksize=chunksize,
            depth=depth,
        )  # fmt: skip
        reply = desk.client.start_tasks(desk.account, request)
        hold(reply.package_id == desk.actor.package_id, "another package was started")
        return replace(memory, started=True, cursor=0, results={}, last_answer="")

    return Deed(f"start {n}", do)


def _read(desk: Desk, memory: Memory) -> Memory:
    cursor = Cursor(package_id=desk.actor.package_id, cursor=memory.cursor)
    reply = desk.client.await_tasks(desk.account, AwaitTasks(packages=[cursor]))
    if reply.missing:
        return replace(memory, last_answer="missing")
    (status,) = reply.packages
    results = dict(memory.results)
    for result in status.results:
        data = (result.blob.key.encode() if result.blob else result.data) or b""
        hold(result.index not in results, "the client reads task", result.index, "twice")
        results[result.index] = result.outcome.encode() + b":" + data
    if not status.more:
        _check_end(status, results)
    return replace(memory, cursor=status.cursor, results=results, last_answer=status.state)


def _check_end(status: PackageStatus, results: dict[int, bytes]) -> None:
    """Check that a client has all results if the master reports a success."""
    there = len(results) + ranges.size(status.cancelled)
    if status.state in {"completed", "error"}:
        hold(
            there == status.progress.tasks, f"the client hears {status.state!r} and has the results of", sorted(results)
        )


READ = Deed("read", _read)


def _acknowledge(desk: Desk, memory: Memory) -> Memory:
    finish(desk.client.acknowledge(desk.account, Acknowledge(package_ids=[desk.actor.package_id])))
    return replace(memory, last_answer="expired")


ACKNOWLEDGE = Deed("acknowledge", _acknowledge)


def cancel(numbers: list[Range] | None = None, *, only_queued: bool = False, operator: bool = False) -> Deed:
    """Cancel the actor's package or a part of it."""

    def do(desk: Desk, memory: Memory) -> Memory:
        request = CancelTasks(package_id=desk.actor.package_id, ranges=numbers, only_queued=only_queued)
        desk.client.cancel_tasks(None if operator else desk.account, request)
        return memory

    return Deed(f"cancel {'queued' if only_queued else numbers or 'all'}", do)


def _list(desk: Desk, memory: Memory) -> Memory:
    finish(desk.client.list_packages(desk.account, ListPackages(limit=10)))
    return memory


LIST = Deed("list packages", _list)


def _tick(desk: Desk, memory: Memory) -> Memory:
    finish(desk.timer.tick())
    return memory


TICK = Deed("tick", _tick)


def grant(quota_us: int) -> Deed:
    """Change the account's quota."""

    def do(desk: Desk, memory: Memory) -> Memory:
        key = f"{desk.actor.name}{memory.at}"
        desk.operator.grant_quota(GrantQuota(idempotency_key=key, account_id=desk.actor.account, quota_us=quota_us))
        return memory

    return Deed(f"grant {quota_us} us", do)


def _revoke(desk: Desk, memory: Memory) -> Memory:
    finish(desk.operator.revoke_account(RevokeAccount(account_id=desk.actor.account)))
    return memory


REVOKE = Deed("revoke", _revoke)


def damage() -> Deed:
    """Flip a bit in the head of the actor's package."""

    def do(desk: Desk, memory: Memory) -> Memory:
        desk.damage(desk.actor.package_id)
        return memory

    return Deed("damage", do)


def wait(seconds: float) -> Deed:
    """Let time pass."""
    return Deed(f"{seconds:g} s pass", seconds=seconds)


def restore(*parts: str) -> Deed:
    """Bring parts of the data back as they were when the exploration started. All masters end at this moment."""
    return Deed(f"restore {', '.join(parts)}", restores=parts)
