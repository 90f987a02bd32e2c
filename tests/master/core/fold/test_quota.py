from cloudpar_master.core.effects import Reserve, Settle, pending
from cloudpar_master.core.events import QuotaGranted, Settled
from cloudpar_master.core.fold.quota import REQUESTS_PER_S
from cloudpar_master.core.head import Head
from cloudpar_master.core.quota import FIRST_SLICE_US
from master.core.folds import NOW, POLICY, asked, finished, granted, new, published, running, spans, take, then


def crossed(exhausted: bool) -> Head:
    """Return a head whose one result has used all that was granted, and that gets nothing more."""
    head = running(granted_us=5_000)
    head = then(head, published(head.version, [0], duration_us=6_000))
    return granted(head, 0, exhausted=exhausted)


def test_nothing_is_cut_before_there_is_compute_time() -> None:
    head = new()
    assert (head.tasks.open, head.quota.wanted_us) == ([], FIRST_SLICE_US)


def test_a_start_with_nothing_left_fails_without_a_chunk() -> None:
    head = granted(new(), 0, exhausted=True)
    assert (head.life.state, head.life.reason, head.tasks.open, head.quota.charged_us) == ("failed", "quota", [], 0)
    assert head.life.message == (
        "the account's compute time is used up: ask the operator to grant more (cloudpar account grant)"
    )


def test_a_result_that_crosses_the_quota_fails_the_package() -> None:
    head = crossed(exhausted=True)
    assert (head.life.state, head.life.reason, head.tasks.done) == ("failed", "quota", 1)
    assert (head.tasks.open, head.uncut) == ([], 0)
    assert (head.quota.used_us, head.quota.charged_us) == (6_000, 5_000)


def test_charging_stops_with_the_quota() -> None:
    head = crossed(exhausted=True)
    head = then(head, published(2, [1, 2], duration_us=1_000))
    assert (head.quota.used_us, head.tasks.stopping) == (6_000, [])
    assert pending(head, POLICY) == [Settle(6_000)]


def test_results_of_one_batch_with_the_crossing_one_are_committed_and_charged_no_more_than_the_quota() -> None:
    head = running(granted_us=5_000)
    folded = take(head, published(head.version, range(10)))
    assert len(folded.results) == 10
    assert folded.head.quota.charged_us == 5_000
    assert spans(folded.head.tasks.open) == [(10, 20), (20, 30), (30, 40)], "nothing new is cut"


def test_a_package_waits_and_asks_again_while_others_hold_the_rest_of_the_quota() -> None:
    head = crossed(exhausted=False)
    assert (head.life.state, head.quota.wanted_us, head.quota.ask_again_at) == ("running", 0, NOW + 1.0)
    head = then(head, now=NOW + 1.0)
    assert asked(head).slice == 1
    head = granted(head, 10_000)
    assert head.life.state == "running"
    assert not head.quota.reserve_spent


def test_a_package_of_an_account_with_many_that_wait_asks_again_later() -> None:
    nothing = QuotaGranted(slice=0, granted_us=0, exhausted=False, packages=3 * REQUESTS_PER_S)
    assert then(new(), nothing).quota.ask_again_at == NOW + 3.0


def test_a_late_copy_of_an_answer_of_nothing_does_not_delay_the_next_request() -> None:
    nothing = QuotaGranted(slice=0, granted_us=0, exhausted=False)
    head = then(new(), nothing)
    assert then(head, nothing, now=NOW + 0.5).quota.ask_again_at == NOW + 1.0


def test_a_request_stays_the_same_until_it_is_answered() -> None:
    head = running(tasks=10_000, chunksize=100, granted_us=10_000_000)
    head = then(head, published(head.version, range(100), duration_us=99_000))
    later = then(head, published(2, range(100, 101), duration_us=99_000))
    assert later.quota.wanted_us == head.quota.wanted_us > 0


def test_an_account_that_grants_something_does_not_count_as_exhausted() -> None:
    assert not granted(new(), 10**9, exhausted=True).quota.exhausted


def test_a_package_of_an_exhausted_account_goes_on_to_the_end_of_its_reserve() -> None:
    head = running(granted_us=3_000)
    head = then(head, published(head.version, [0], duration_us=2_999))
    head = granted(head, 0, exhausted=True)
    assert (head.life.state, head.quota.exhausted, head.quota.wanted_us) == ("running", True, 0)
    head = then(head, published(2, [1], duration_us=2_000))
    assert (head.life.state, head.quota.wanted_us) == ("running", 1_000_000)
    assert granted(head, 0, exhausted=True).life.state == "failed"


def test_a_package_goes_on_when_the_operator_grants_more() -> None:
    head = running(granted_us=3_000)
    head = granted(then(head, published(head.version, [0], duration_us=2_999)), 0, exhausted=True)
    head = granted(then(head, published(2, [1], duration_us=2_000)), 10**9)
    assert finished(head).life.state == "completed"


def test_a_repeated_answer_to_a_slice_counts_once() -> None:
    head = new()
    answer = QuotaGranted(slice=0, granted_us=FIRST_SLICE_US, exhausted=False)
    assert then(head, answer, answer).quota.reserved_us == FIRST_SLICE_US
    assert then(then(head, answer), answer).quota.reserved_us == FIRST_SLICE_US


def test_of_two_different_answers_for_one_slice_the_one_that_grants_time_counts() -> None:
    """Nothing is left for the first request; then another package settles, and the account keeps the second answer."""
    head = new()
    first = QuotaGranted(slice=0, granted_us=0, exhausted=False)
    second = QuotaGranted(slice=0, granted_us=5_000, exhausted=False)
    for order in ([first, second], [second, first]):
        folded = then(head, *order)
        assert (folded.quota.reserved_us, folded.quota.next_slice) == (5_000, 1)


def test_an_answer_of_nothing_does_not_use_up_the_number_of_its_slice() -> None:
    head = then(new(), QuotaGranted(slice=0, granted_us=0, exhausted=False))
    head = then(head, now=NOW + 1)
    assert pending(head, POLICY) == [Reserve(0, FIRST_SLICE_US)]


def test_the_next_slice_is_wanted_before_the_reserve_is_used() -> None:
    head = running(tasks=10_000, chunksize=100, granted_us=10_000_000)
    assert head.quota.wanted_us == 0
    head = then(head, published(head.version, range(100), duration_us=99_000))
    assert asked(head).slice == 1
    assert head.quota.wanted_us == 2 * POLICY.slice_us - 100_000


def test_a_package_whose_tasks_are_done_but_not_paid_for_waits_for_its_account() -> None:
    head = running(tasks=10, granted_us=5_000)
    head = then(head, published(head.version, range(10)))
    assert (head.life.state, head.tasks.done, head.quota.charged_us) == ("running", 10, 5_000)
    assert granted(head, 5_000).life.state == "completed"
    assert granted(head, 0, exhausted=True).life.reason == "quota"


def test_a_settled_charge_is_final() -> None:
    head = then(finished(running()), Settled(charged_us=99_999))
    assert head.quota.charged_us == 99_999
    again = then(head, Settled(charged_us=99_999), published(2, [3], duration_us=10**6))
    assert again.quota.charged_us == 99_999


def test_an_answer_after_the_end_changes_nothing() -> None:
    head = then(finished(running()), QuotaGranted(slice=1, granted_us=7, exhausted=False))
    assert head.quota.reserved_us == finished(running()).quota.reserved_us
