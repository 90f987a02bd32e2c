"""Makes leases of chunks, and later says which of their tasks the worker should still run."""

import logging
from collections.abc import Iterable, Mapping, Sequence

from cloudpar_master.core import pacing, quota
from cloudpar_master.core.head import Head
from cloudpar_master.ports import Message
from cloudpar_protocol import ranges
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.payloads import SEAL_BYTES, BlobData, InlineData, Network, Range, TaskData
from cloudpar_protocol.worker_messages import Lease, LeaseRef, LeaseView, RetrieveTasks, TaskCredentials

from .account_keys import AccountKeys
from .backend import Backend
from .chunk_text import ChunkText
from .isolation import gathered

log = logging.getLogger("cloudpar_master")


class Leases:
    """Makes leases of one backend's chunks, and views, which say which tasks of a lease the master still wants."""

    def __init__(self, backend: Backend, keys: AccountKeys) -> None:
        self._backend = backend
        self._keys = keys

    def make(
        self,
        request: RetrieveTasks,
        head: Head,
        start: StartTasks,
        message: Message,
        budget_us: int,
        *,
        network: Network,
    ) -> Lease:
        """Make a lease of the chunk that a message brings, for the worker that sent the request.

        Raises:
            Unavailable: The package is sealed, and its account's key is not available now (see AccountKeys). Or the
                account has an IAM role, and AWS gives no credentials now.
        """
        policy, code, data = self._backend.policy, start.code, start.data
        chunk = ChunkText.parse(message.body)
        left = wanted(head, chunk.start, chunk.end, chunk.generation)
        return Lease(
            package_id=head.package_id,
            lease_id=self._backend.ids.fresh(),
            receipt=message.receipt,
            start=chunk.start,
            end=chunk.end,
            generation=chunk.generation,
            ranges=left,
            attempt=chunk.losses + message.receives,
            account=head.account_id,
            lease_s=policy.lease_s,
            code=code,
            code_link=self._backend.blobs.get_link(code.blob.key) if code.blob else None,
            data=_slice(data, left),
            data_link=self._backend.blobs.get_link(data.blob.key) if isinstance(data, BlobData) else None,
            tasks=head.tasks.count,
            call=start.call,
            codec=start.codec,
            python=start.python,
            mean_us=round(head.pace.mean_us),
            wait_us=chunk.waited_us(message, self._backend.clock.now()),
            task_timeout_s=min(start.task_timeout_s or policy.task_timeout_s, policy.task_timeout_s),
            budget_us=budget_us,
            collect_us=pacing.collect_us(request.executors, head, budget_us, policy),
            beat_s=pacing.beat_s(head, policy),
            retries=start.retries,
            retry_on=start.retry_on,
            threads_per_task=start.threads_per_task,
            depth=start.depth,
            seal=start.seal,
            seal_key=None if start.seal is None else self._keys.key_of(head.account_id, head.package_id, start),
            elsewhere=not head.life.run_anyway,
            # On a worker that has not set `credentials`, tasks of other accounts could read them.
            credentials=self.credentials(head) if request.credentials else None,
            network=network,
        )

    def network(self, request: RetrieveTasks, head: Head) -> Network | None:
        """Return how the package's tasks may use the network; None if the worker could not keep them from it."""
        network = self._backend.accounts.network(head.account_id)
        return network if request.offline or network == "outbound" else None

    def credentials(self, head: Head) -> TaskCredentials | None:
        """Return credentials for the tasks of a package; None if its account has no IAM role. Raises like `make`."""
        roles = self._backend.roles
        return None if roles is None else roles.credentials(head.account_id, head.package_id)

    def budgets(self, heads: Iterable[Head | None]) -> dict[str, int]:
        """Return the microseconds that each running package may still use, by package id.

        In `heads`, None stands for a package that does not exist. Each account is read once. An account that cannot be
        read counts as having one slice left. If it counted as having none, a passing error would stop its tasks. If
        this method raised the error, the leases of all other accounts would end.

        Raises:
            Exception: None of the accounts can be read; this is the error of the first one.
        """
        running = [head for head in heads if head is not None and not head.life.ended]
        free_us, failures = gathered((head.account_id for head in running), self._backend.accounts.free_us)
        if failures and not free_us:
            raise next(iter(failures.values()))
        for account_id, failure in failures.items():
            text = "account %s cannot be read (%r); its tasks go on until they have used one more slice"
            log.warning(text, account_id, failure)
        slice_us = self._backend.policy.slice_us
        return {head.package_id: quota.budget_us(head, free_us.get(head.account_id, slice_us)) for head in running}

    def views(self, refs: Sequence[LeaseRef], heads: Mapping[str, Head | None]) -> list[LeaseView]:
        """Return a view of each lease: which of its tasks the master still wants."""
        budgets = self.budgets(heads.values())
        return [self._view(ref, heads[ref.package_id], budgets.get(ref.package_id, 0)) for ref in refs]

    def _view(self, ref: LeaseRef, head: Head | None, budget_us: int) -> LeaseView:
        left = wanted(head, ref.start, ref.end, ref.generation)
        if head is None or head.life.ended:
            completed = head is not None and head.life.state == "completed"
            return LeaseView(lease_id=ref.lease_id, state="finished" if completed else "ended")
        if not left:
            return LeaseView(lease_id=ref.lease_id, state="finished")
        lease_s = self._backend.policy.lease_s
        return LeaseView(lease_id=ref.lease_id, state="wanted", ranges=left, lease_s=lease_s, budget_us=budget_us)


def wanted(head: Head | None, start: int, end: int, generation: int) -> list[Range]:
    """Return the tasks of a chunk that have no result, and were neither cancelled nor queued again.

    There are none if the package has ended, or does not exist (`head` is None).

    The generation distinguishes a chunk from a later chunk with the same tasks. Without the generation, a message that
    is delivered late would lease tasks that another worker has.
    """
    if head is None or head.life.ended:
        return []
    chunk = [(start, end)]
    near = (head.tasks.open[at] for at in head.tasks.among(chunk))
    return ranges.intersect(((each.start, each.end) for each in near if each.generation == generation), chunk)


def _slice(data: TaskData, left: Sequence[Range]) -> TaskData:
    if isinstance(data, InlineData):
        items = [item for start, end in left for item in data.items[start:end]]
        return InlineData(items, b"".join([data.seals[SEAL_BYTES * start : SEAL_BYTES * end] for start, end in left]))
    return data
