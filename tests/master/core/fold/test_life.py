from typing import cast

import pytest
from msgspec.structs import replace

from cloudpar_master.core.effects import Settle, pending
from cloudpar_master.core.events import Acknowledged, Broken, CancelAsked, Deleted, Event, Settled, Stranded
from cloudpar_master.core.head import MESSAGE_BYTES
from cloudpar_master.core.policy import Policy
from master.core.folds import NOW, POLICY, finished, new, published, running, take, then

DAY_S = 86400.0


def test_a_fold_does_not_change_the_head_that_it_gets() -> None:
    head = running()
    before = replace(head.draft())
    take(head, published(head.version, range(20)), CancelAsked())
    assert head == before


def test_every_fold_is_a_new_version() -> None:
    head = running()
    assert then(head).version == head.version + 1


def test_time_never_goes_back() -> None:
    head = then(running(), now=NOW + 100)
    assert then(head, now=NOW - 1_000).now == NOW + 100


def test_the_grace_time_starts_again_after_a_worker_with_the_packages_python_was_there() -> None:
    head = then(running(), Stranded(message="no 3.12"))
    head = then(head, Stranded(), now=head.now + 1)  # a worker has it, and lacks a module
    head = then(head, Stranded(message="no 3.12"), now=head.now + POLICY.grace_s)
    assert head.life.state == "running"
    assert then(head, Stranded(message="no 3.12"), now=head.now + POLICY.grace_s).life.reason == "python"


def test_a_package_that_runs_too_long_fails() -> None:
    head = running()
    assert then(head, now=NOW + 14 * DAY_S - 1).life.state == "running"
    head = then(head, now=NOW + 14 * DAY_S)
    assert (head.life.state, head.life.reason) == ("failed", "expired")
    assert head.life.message == "it still ran after 14 days, the most that a package may"


def test_a_package_whose_tasks_are_all_done_and_that_waits_for_its_account_does_not_expire() -> None:
    head = running(tasks=10, granted_us=5_000)
    head = then(head, published(head.version, range(10)), now=NOW + 14 * DAY_S)
    assert (head.life.state, head.tasks.done) == ("running", 10)


def test_an_ended_package_requests_no_time() -> None:
    assert pending(then(new(), CancelAsked()), POLICY) == [Settle(0)]


def test_an_event_that_cannot_be_folded_fails_its_package() -> None:
    head = then(running(), Broken(message="event x is unreadable"))
    assert (head.life.state, head.life.reason, head.life.message) == ("failed", "broken", "event x is unreadable")
    assert then(finished(running()), Broken(message="too late")).life.state == "completed"


def test_a_long_message_is_cut() -> None:
    head = then(running(), Broken(message="x" * 10_000))
    assert head.life.message == "x" * MESSAGE_BYTES


@pytest.mark.parametrize(("outcome", "state"), [("ok", "completed"), ("error", "error")])
def test_a_package_that_no_client_acknowledges_expires(outcome: str, state: str) -> None:
    head = running(tasks=1)
    head = then(head, published(head.version, [0], outcome="ok" if outcome == "ok" else "error"), now=NOW + 60)
    head = then(head, Settled(charged_us=1_000), now=NOW + 61)
    assert then(head, now=NOW + 60 + 7 * DAY_S - 1).life.state == "completed"
    head = then(head, now=NOW + 60 + 7 * DAY_S)
    assert (head.life.state, head.life.reason) == ("expired", "expired")
    for each in (head, then(head), then(head, Deleted())):
        assert each.life.message == f"no client acknowledged it for 7 days after it ended ({state})"


def test_an_acknowledged_package_does_not_expire() -> None:
    head = then(then(finished(running()), Settled(charged_us=0)), Acknowledged())
    assert then(head, now=NOW + 8 * DAY_S).life.state == "completed"


def test_the_retention_is_a_setting() -> None:
    policy = Policy(retention_s=3600.0)
    head = then(finished(running()), Settled(charged_us=0))
    assert then(head, now=NOW + 3600, policy=policy).life.state == "expired"


def test_an_unsettled_package_does_not_expire() -> None:
    head = then(finished(running()), now=NOW + 8 * DAY_S)
    assert head.life.state == "completed"
    assert then(head, Settled(charged_us=100_000)).life.state == "expired"


def test_the_time_of_the_deletion_is_kept() -> None:
    head = then(then(finished(running()), Settled(charged_us=0)), now=NOW + 7 * DAY_S)
    head = then(head, Deleted(), now=NOW + 7 * DAY_S + 1)
    assert then(head, Deleted(), now=NOW + 8 * DAY_S).life.deleted_at == NOW + 7 * DAY_S + 1


def test_progress_says_how_far_it_is() -> None:
    head = running()
    head = then(head, replace(published(2, range(8), duration_us=50, executors=3), retrieve_us=7, publish_us=9))
    head = then(head, published(2, [8], outcome="error", duration_us=100))
    progress = head.progress()
    assert (progress.tasks, progress.done, progress.errors, progress.executors) == (100, 9, 1, 2)
    assert (progress.charged_us, progress.execute_us, progress.mean_us) == (500, 500, 56)
    assert (progress.retrieve_us, progress.publish_us) == (7, 9)


def test_settling_ends_the_wait_for_stopped_tasks() -> None:
    head = then(then(running(), CancelAsked()), Settled(charged_us=0))
    assert head.tasks.stopping == []
    assert then(head, published(2, [0], outcome="cancelled")).quota.used_us == head.quota.used_us == 0


def test_a_completed_package_whose_results_cannot_be_read_fails() -> None:
    done = finished(running())
    head = then(done, Broken(message="page 3 is damaged" + "!" * MESSAGE_BYTES, results=True))
    assert (head.life.state, head.life.reason) == ("failed", "broken")
    assert head.life.message == ("page 3 is damaged" + "!" * MESSAGE_BYTES)[:MESSAGE_BYTES]
    assert then(then(running(), CancelAsked()), Broken(message="page 3", results=True)).life.state == "cancelled"


def test_the_missing_results_of_an_acknowledged_package_do_not_make_it_fail() -> None:
    done = then(finished(running()), Acknowledged())
    assert then(done, Broken(message="page 3", results=True)).life.state == "completed"


def test_what_is_no_known_event_is_an_error_and_is_not_dropped() -> None:
    """The service that folds then fails the package. Otherwise a new event without its branch would have no effect."""
    with pytest.raises(AssertionError):
        then(running(), cast("Event", object()))


def test_the_time_of_stopped_tasks_that_is_reported_late_is_charged_until_the_package_is_settled() -> None:
    head = then(running(), CancelAsked())
    head = then(head, now=NOW + 3 * POLICY.lease_s)
    head = then(head, published(2, [3], outcome="cancelled", duration_us=10))
    assert pending(head, POLICY) == [Settle(10)]
