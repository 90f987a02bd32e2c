"""Bugs, each the opposite of a rule of the design. A good simulation finds them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cloudpar_master.core import effects
from cloudpar_master.core.fold import open_ranges, tasks
from cloudpar_master.core.fold.draft import Draft
from cloudpar_master.core.head import Head, OpenRange
from cloudpar_master.ports import Opened
from cloudpar_master.services import folding
from cloudpar_master.services.folding import Folding, Taken
from cloudpar_master.services.worker_service import WorkerService
from support.memory.accounts import MemoryAccountStore
from support.memory.packages import MemoryPackageStore
from support.memory.queue import MemoryTaskQueue

Bug = Callable[[pytest.MonkeyPatch], None]


def the_loser_of_a_race_does_not_look_again(patch: pytest.MonkeyPatch) -> None:
    """The winner does not look again, either."""

    def try_direct(self: Folding, package_id: str, items: Any, opened: Any, *, due: bool, asked: bool) -> Taken:
        del asked
        packages = self._backend.packages
        opened = opened or packages.open(package_id, folding.EVENTS)
        if opened is None:
            return Taken(None, all=True)
        head, inbox, _ = opened
        if not (items or inbox or due or self._is_due(head)):
            return Taken(head, all=True)
        saved = self._fold_and_save(head, inbox, [event for _, event in items])
        if saved is None:
            packages.append(package_id, items)
            return Taken(packages.load(package_id), all=True)
        return Taken(self._carry_out(saved), all=True)

    patch.setattr(Folding, "_try_direct", try_direct)


def a_save_overwrites_what_others_saved(patch: pytest.MonkeyPatch) -> None:
    original = MemoryPackageStore.save

    def save(self: MemoryPackageStore, head: Head, due_at: float, results: Any = ()) -> bool:
        stored = self._packages.get(head.package_id)
        if stored is not None:
            stored.version = head.version - 1
        return original(self, head, due_at, results)

    patch.setattr(MemoryPackageStore, "save", save)


def a_result_counts_again(patch: pytest.MonkeyPatch) -> None:
    """A publication of a task that has a result already is committed and charged once more."""
    original = tasks.commit

    def commit(draft: Draft, results: Any, generation: int) -> Any:
        accepted = original(draft, results, generation)
        again = [result for result in results if result not in accepted and not draft.head.life.ended]
        draft.results += again
        draft.head.quota.used_us += sum(result.duration_us for result in again)
        return accepted + again

    patch.setattr(tasks, "commit", commit)


def a_slice_is_reserved_again(patch: pytest.MonkeyPatch) -> None:
    original = MemoryAccountStore.reserve

    def reserve(self: MemoryAccountStore, account_id: str, package_id: str, number: int, wanted_us: int) -> Any:
        self._books.slices.get(package_id, {}).pop(number, None)
        return original(self, account_id, package_id, number, wanted_us)

    patch.setattr(MemoryAccountStore, "reserve", reserve)


def a_package_is_settled_again(patch: pytest.MonkeyPatch) -> None:
    original = MemoryAccountStore.settle

    def settle(self: MemoryAccountStore, account_id: str, package_id: str, used_us: int, held_us: int = 0) -> int:
        self._books.charged.pop(package_id, None)
        return original(self, account_id, package_id, used_us, held_us)

    patch.setattr(MemoryAccountStore, "settle", settle)


def events_are_deleted_before_the_save(patch: pytest.MonkeyPatch) -> None:
    original = Folding._fold_and_save

    def fold_and_save(self: Folding, head: Head, inbox: Any, others: Any) -> Head | None:
        if inbox:
            self._backend.packages.delete_events(head.package_id, [item.key for item in inbox])
        return original(self, head, inbox, others)

    patch.setattr(Folding, "_fold_and_save", fold_and_save)


def a_message_is_deleted_before_its_results_are_taken(patch: pytest.MonkeyPatch) -> None:
    """Rule 5."""
    original = WorkerService.publish_results

    def publish_results(self: WorkerService, request: Any) -> Any:
        self._close(request.publications)
        return original(self, request)

    patch.setattr(WorkerService, "publish_results", publish_results)


def a_generation_is_used_again(patch: pytest.MonkeyPatch) -> None:
    """Tasks that come back are queued under the old name of their chunk, which the queue drops."""

    def recut(head: Head, chunks: Sequence[Any], *_: Any) -> None:
        again = [OpenRange(each.start, each.end, each.generation) for each in chunks]
        head.tasks.open = sorted([*head.tasks.open, *again], key=lambda each: each.start)

    patch.setattr(open_ranges, "recut", recut)


def lost_effects_are_not_carried_out(patch: pytest.MonkeyPatch) -> None:
    """The registry does not name packages whose master died before it carried the effects out."""
    original = effects.look_at

    def look_at(head: Head, policy: Any) -> float:
        return original(head, policy) if not effects.pending(head, policy) or head.life.settled else head.now + 10**6

    patch.setattr("cloudpar_master.services.folding.look_at", look_at)
    patch.setattr(folding, "STALE_S", 10.0**9)


def lost_deletions_are_not_carried_out(patch: pytest.MonkeyPatch) -> None:
    """The registry does not name settled packages whose master died before it deleted them: their data stay."""
    original = effects.look_at

    def look_at(head: Head, policy: Any) -> float:
        lost = head.life.settled and effects.pending(head, policy)
        return head.now + 10**9 if lost else original(head, policy)

    patch.setattr("cloudpar_master.services.folding.look_at", look_at)


def a_cancel_is_confirmed_before_it_is_decided(patch: pytest.MonkeyPatch) -> None:
    """Rule 6."""

    def confirm(self: Folding, package_id: str, key: str, event: Any, opened: Opened | None = None) -> Head | None:
        self._backend.packages.append(package_id, [(key, event)])
        head = self._backend.packages.load(package_id)
        if head is not None and not head.life.ended:
            head.life.state = "cancelled"
        return head

    patch.setattr("cloudpar_master.services.client_service.Folding.confirm", confirm)


def an_expired_lease_brings_no_message_back(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MemoryTaskQueue, "_surface", lambda self, now: None)


BUGS: list[Bug] = [
    the_loser_of_a_race_does_not_look_again,
    a_save_overwrites_what_others_saved,
    a_result_counts_again,
    a_slice_is_reserved_again,
    a_package_is_settled_again,
    events_are_deleted_before_the_save,
    a_message_is_deleted_before_its_results_are_taken,
    a_generation_is_used_again,
    lost_effects_are_not_carried_out,
    lost_deletions_are_not_carried_out,
    a_cancel_is_confirmed_before_it_is_decided,
    an_expired_lease_brings_no_message_back,
]

RARE = {
    the_loser_of_a_race_does_not_look_again,
    a_message_is_deleted_before_its_results_are_taken,
    lost_effects_are_not_carried_out,
    a_generation_is_used_again,
    events_are_deleted_before_the_save,
    an_expired_lease_brings_no_message_back,
}
"""The simulation needs many seeds, or long runs, to find these."""
