"""Bounds what the agent holds and transfers for each account: results for the master, and payloads for waiting tasks.

The memory of these results and payloads does not count towards the memory limit of any executor. Without the bounds
here, one account could fill the agent's memory. If the agent then ended, the tasks of all accounts would end with it.
Transfers are repeated until they succeed, so one account could also occupy all threads that transfer payloads.
"""

from typing import Final

from .facts import Facts
from .lease_record import LeaseRecord

RESULT_BYTES: Final = 256 * 1024 * 1024
"""While an account has this many bytes of results that the master does not have yet, executors get no further tasks of
this account. Tasks that run already can still add their results.
"""
PAYLOAD_BYTES: Final = 256 * 1024 * 1024
"""While this many bytes of task code and task data of an account wait for executors, the agent downloads nothing more
for this account. A download that starts below this number may exceed it.
"""
DOWNLOADS: Final = 2
"""How many downloads of one account may be under way or wait for a thread. The agent has one more download thread than
this, so that other accounts always have one.
"""
PUBLISH_JOBS: Final = 2
"""How many Publish instructions with large results may be under way for one account: the agent sends the requests of
one while it prepares the next. The agent has one more thread than this for such instructions, so that other accounts
always have one. Of Publish instructions without large results, this many may be under way for all accounts together.
"""


def full_accounts(facts: Facts) -> set[str]:
    """Return the accounts with too many results that the master does not have yet."""
    held: dict[str, int] = {}
    for record in facts.leases.values():
        if record.result_bytes:
            held[record.lease.account] = held.get(record.lease.account, 0) + record.result_bytes
    return {account for account, held_bytes in held.items() if held_bytes >= RESULT_BYTES}


def may_download(facts: Facts, record: LeaseRecord) -> bool:
    """Whether the agent may download a further payload for the account of a lease."""
    account = record.lease.account
    records = [each for each in facts.leases.values() if each.lease.account == account]
    codes: dict[str, int] = {}
    data_bytes = 0
    for each in records:
        tasks, code = each.ready_tasks + each.fed, each.lease.code
        if tasks:
            # A lease's data may come in several downloads. `item_bytes`, the largest of their mean item sizes, stands
            # for all tasks. The sum leaves out cancelled tasks. Their data stays in memory as long as other tasks of
            # its segment wait, but if the sum included it, the downloads could stop for good.
            data_bytes += tasks * each.item_bytes
            codes[code.hash] = code.blob.size if code.blob else 0
    if data_bytes + sum(codes.values()) >= PAYLOAD_BYTES:
        return False
    return sum(each.downloading for each in records) < DOWNLOADS


def may_publish(facts: Facts, record: LeaseRecord) -> bool:
    """Whether the agent may start to publish the pending results of a lease."""
    return facts.publish_jobs[record.uploads_next_for] < PUBLISH_JOBS
