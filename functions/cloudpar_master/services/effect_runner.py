"""Carries effects out, and makes an event of each answer."""

from contextlib import suppress
from typing import NamedTuple

from cloudpar_master.core.effects import Delete, Effect, Forget, Reserve, Send, Settle
from cloudpar_master.core.events import Cleared, Deleted, Event, QuotaGranted, Sent, Settled
from cloudpar_master.core.fold.quota import REQUESTS_PER_S
from cloudpar_master.core.head import Head
from cloudpar_master.core.recent import Recent
from cloudpar_protocol import ranges
from cloudpar_protocol.payloads import BlobData, Range

from .backend import Backend
from .chunk_text import ChunkText, sending

FEW = 20
"""If an account has more packages than this, only some requests for a slice read the heads of all its packages."""

CHECKED = 1_000
"""For how many accounts the last check is remembered."""


class _Check(NamedTuple):
    """The number of an account's packages at a check, and the time until which the account is not checked again."""

    packages: int
    again_at: float


class EffectRunner:
    """Carries out the effects of saved heads by calls of the ports.

    Several masters may carry out the effects of one head, or one master may do so twice. A repeated call does no harm:
    slices are numbered, and the account grants each number once; for 5 minutes the queue drops a second copy of a
    chunk; the account charges each package once; and what was removed stays removed. If a chunk is sent again later,
    two workers may run its tasks, but the first result of each task counts.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._checks = Recent[str, _Check](CHECKED)

    def answer(self, head: Head, effect: Effect) -> Event | None:
        """Carry an effect out, and return the event that answers it. None: the effect stays pending."""
        on = self._backend
        match effect:
            case Reserve(slice=number, wanted_us=wanted_us):
                got = on.accounts.reserve(head.account_id, head.billing_id, number, wanted_us)
                if got.granted_us or got.exhausted:
                    return QuotaGranted(
                        slice=number, granted_us=got.granted_us, exhausted=got.exhausted and not got.granted_us
                    )
                spent, packages = self._all_spent(head)
                return QuotaGranted(slice=number, granted_us=0, exhausted=spent, packages=packages)
            case Send(chunks=chunks):
                texts = [ChunkText.of(head.package_id, chunk) for chunk in chunks]
                sendings = [
                    sending(head, text, on.policy, express=chunk.express)
                    for text, chunk in zip(texts, chunks, strict=True)
                ]
                sent = on.queue.send(sendings)
                done = [chunk for chunk, is_sent in zip(chunks, sent, strict=True) if is_sent]
                return Sent(chunks=[(chunk.start, chunk.end, chunk.generation) for chunk in done]) if done else None
            case Settle(used_us=used_us):
                charged_us = on.accounts.settle(head.account_id, head.billing_id, used_us, head.quota.reserved_us)
                return Settled(charged_us=charged_us)
            case Delete():
                return Deleted() if self._delete(head) else None
            case Forget():
                raise AssertionError(effect)

    def withdraw(self, head: Head) -> Event | None:
        """Remove from the queue the waiting chunks of a package that has ended and is not settled yet.

        If all tasks are done, there are at most messages of chunks that came back from slow workers. The next receiver
        deletes them, so most packages cost no request for this.

        Returns an event that names the tasks of the chunks that no worker has received, so that the package does not
        wait for their times. None: the package waits for none of these tasks.

        The withdrawal is not one of the effects, because it cannot be repeated: no later call returns these chunks
        again. If the process dies, or loses the race to save, before it has saved the event, the package waits until
        `settle_at`, as on AWS, where the queue cannot withdraw chunks.
        """
        done = head.life.state == "completed" and not head.tasks.stopping
        if done or not head.life.ended or head.life.settled:
            return None
        untouched: list[Range] = []
        for body in self._backend.queue.withdraw(head.account_id, head.package_id):
            with suppress(ValueError):  # a damaged text names no chunk
                chunk = ChunkText.parse(body)
                # A worker that was lost before the chunk was put back may still run the tasks, and report their times.
                if not chunk.queue_losses:
                    untouched.append((chunk.start, chunk.end))
        cleared = ranges.intersect(ranges.union(untouched), head.tasks.stopping)
        # The generations of the chunks do not matter. An ended package has no open ranges, and none of these chunks is
        # an old one whose tasks a worker has in a newer chunk: the messages of a package come in order, so older chunks
        # of a task leave the queue before a worker gets the newest one.
        return Cleared(generation=head.version, ranges=cleared) if cleared else None

    def release(self, head: Head) -> None:
        """Give the slices of an unreadable package back to its account. The time used is not known, so it is free.

        Without this, the slices would stay reserved for good, and the account would never learn that its quota is
        spent: its other packages would wait for these slices. If the package was settled already, nothing changes.
        """
        self._backend.accounts.settle(head.account_id, head.billing_id, 0)

    def forget(self, head: Head) -> bool:
        """Remove the tombstone and all that is still stored of its package, such as results that were uploaded late.

        Returns False if another master has saved or removed the tombstone meanwhile.
        """
        # Remove the head last: after a crash between two calls the tombstone is still there, so the timer repeats all
        # calls. In the other order, no record would lead to these results any more.
        self._backend.blobs.abandon(f"results/{head.package_id}/")
        # After the settlement a lease may have ended, so that its message waits in the queue again. No later call would
        # know that this message is of no use.
        self._backend.queue.withdraw(head.account_id, head.package_id)
        return self._backend.packages.forget(head)

    def _all_spent(self, head: Head) -> tuple[bool, int]:
        """Whether all packages of the account have used up their slices, so that none of them gives compute time back.

        Without this check, the packages would wait for each other until their lifetime is over. If the account has
        reserved more than the heads of its packages say, one package has received a slice that its head does not show
        yet. That package goes on, so the answer is then False.

        The check may read the heads of all packages of the account that are not settled. For an account with many
        packages, this reading is slow. Therefore the next packages of the account get an answer of False without a new
        check, until all of its packages have had time to request a slice.

        Returns:
            The answer, and the approximate number of the account's packages that may request slices. This number
            decides how soon each of these packages requests a slice again, so it must not be too small.
        """
        account_id, now = head.account_id, self._backend.clock.now()
        known = self._checks.get(account_id)
        if known is not None and now < known.again_at:
            return False, known.packages
        if not head.quota.reserve_spent:
            return False, self._note(account_id, self._backend.packages.running(account_id).packages)
        heads: list[Head] = []
        for each in self._backend.packages.unsettled(account_id):
            if not each.quota.reserve_spent:
                # Stop at the first such package: an account may have thousands of packages that have ended and are not
                # settled yet, and decoding all of their heads would keep the master's one thread busy.
                return False, self._note(account_id, self._backend.packages.running(account_id).packages)
            heads.append(each)
        account = self._backend.accounts.get(account_id)
        held_us = 0 if account is None else account.reserved_us
        noted_us = sum(head.quota.reserved_us for head in heads)
        # The head of a damaged package does not show what the package has reserved. Without the check of `damaged`, the
        # answer for its account would always be False.
        spent = held_us <= noted_us or any(head.damaged for head in heads)
        return spent, len(heads) if spent else self._note(account_id, len(heads))

    def _note(self, account_id: str, packages: int) -> int:
        """Remember, for an account with many packages, that a check has answered False. Returns `packages`."""
        if packages > FEW:
            self._checks[account_id] = _Check(packages, self._backend.clock.now() + packages / REQUESTS_PER_S)
        return packages

    def _delete(self, head: Head) -> bool:
        """Delete what a package stores, or a part of it. Returns whether all is deleted."""
        found = self._backend.packages.find([head.package_id]).get(head.package_id)
        if found is None or found[0].started_at != head.started_at:
            return True  # a later package may have the same id, and must not lose its results
        spec = found[1]  # None if it is damaged: its task data is removed as unused later
        if spec is not None and isinstance(spec.start.data, BlobData):
            self._backend.blobs.delete(spec.start.data.blob.key)
        self._backend.blobs.delete(f"results/{head.package_id}/")
        return self._backend.packages.delete_pages(head.package_id)
