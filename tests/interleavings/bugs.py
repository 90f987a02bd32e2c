"""Bugs, each with a scenario that finds it: those of the simulation, and the opposites of three more rules."""

from typing import Final, NamedTuple

import pytest

from cloudpar_master.core.fold import resending, tasks
from cloudpar_master.core.head import Head
from cloudpar_master.ports import PackageStore, Unreadable
from cloudpar_master.services import package_awaits, result_pages
from simulation import bugs
from simulation.bugs import Bug
from support.memory.packages import MemoryPackageStore


def a_closed_lease_gives_nothing_back(patch: pytest.MonkeyPatch) -> None:
    """The master believes a worker that closes a lease: the results that did not arrive are never wanted again."""
    patch.setattr(tasks, "close", lambda *_: None)


def a_reader_takes_missing_results_for_none(patch: pytest.MonkeyPatch) -> None:
    """A reader does not notice that the results were deleted since it has read the head."""

    def read_results(packages: PackageStore, head: Head, cursor: int, room: int) -> result_pages.Results:
        try:
            return original(packages, head, cursor, room)
        except Unreadable:
            return result_pages.Results([], cursor, more=False, size_bytes=0)

    original = result_pages.read_results
    patch.setattr(package_awaits, "read_results", read_results)
    patch.setattr(package_awaits, "reload_at_end", lambda packages, head, cursor, page, policy: head)


def a_slow_master_forgets_the_next_package(patch: pytest.MonkeyPatch) -> None:
    def forget(self: MemoryPackageStore, head: Head) -> bool:
        self._packages.pop(head.package_id, None)
        return True

    patch.setattr(MemoryPackageStore, "forget", forget)


def what_the_queue_lost_is_not_sent_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(resending, "resend", lambda draft, events: None)


def the_stand_in_of_a_damaged_head_is_folded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Head, "foreign", False)


class Planted(NamedTuple):
    """A bug, the scenario that finds it, and the deviations that this takes."""

    bug: Bug
    scenario: str
    deviations: int = 1


PUBLISHERS: Final = "another worker publishes, a worker takes all and dies with its master"
REUSE: Final = "a key is used again while two timers forget its package"

PLANTED: Final = [
    Planted(bugs.the_loser_of_a_race_does_not_look_again, PUBLISHERS),
    Planted(bugs.a_save_overwrites_what_others_saved, PUBLISHERS),
    Planted(bugs.a_result_counts_again, PUBLISHERS),
    Planted(bugs.a_slice_is_reserved_again, REUSE),
    Planted(bugs.a_package_is_settled_again, PUBLISHERS),
    Planted(bugs.events_are_deleted_before_the_save, "at the same time: three publications", 2),
    Planted(bugs.a_message_is_deleted_before_its_results_are_taken, PUBLISHERS),
    Planted(bugs.a_generation_is_used_again, "another worker publishes, a worker gives back", 0),
    Planted(bugs.lost_effects_are_not_carried_out, REUSE),
    Planted(bugs.lost_deletions_are_not_carried_out, "two readers, and one acknowledges"),
    Planted(bugs.an_expired_lease_brings_no_message_back, PUBLISHERS),
    Planted(
        a_closed_lease_gives_nothing_back, "a lease is closed before every result of it arrived: nothing arrived", 0
    ),
    Planted(a_reader_takes_missing_results_for_none, "two readers, and one acknowledges"),
    Planted(a_slow_master_forgets_the_next_package, REUSE),
    Planted(
        what_the_queue_lost_is_not_sent_again, "a backup without the queue is restored while a worker publishes", 0
    ),
    Planted(the_stand_in_of_a_damaged_head_is_folded, "the head of a package is damaged while a worker publishes", 0),
]
