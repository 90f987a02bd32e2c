"""Workers that cannot run a package: the package names the first ones, and waits for a worker with its Python."""

from cloudpar_master.core.events import GaveBack, Placed, Published, Stranded
from cloudpar_master.core.head import HOST_BYTES, LACKS_BYTES, SET_ASIDE, Head
from cloudpar_protocol.payloads import Unfit
from master.core.folds import NOW, POLICY, published, running, then

STRANDED = Stranded(message="no worker has Python 3.12")


def unfit(host: str, lacks: str = "numpy") -> GaveBack:
    return GaveBack(generation=2, ranges=[], unfit=Unfit(host, lacks))


def fails_at(head: Head) -> float:
    """Return when a package that is stranded from now on fails."""
    head = then(head, STRANDED)
    assert then(head, STRANDED, now=head.now + POLICY.grace_s - 1).life.state == "running"
    failed = then(head, STRANDED, now=head.now + POLICY.grace_s).life
    assert (failed.state, failed.reason, failed.message) == ("failed", "python", STRANDED.message)
    return head.now + POLICY.grace_s


def test_a_worker_that_lacks_something_is_named_once_and_a_give_back_for_another_reason_names_none() -> None:
    head = then(running(), unfit("one"), unfit("one"), unfit("two"), GaveBack(generation=2, ranges=[]))
    assert head.life.set_aside == [Unfit("one", "numpy"), Unfit("two", "numpy")]


def test_at_most_the_first_few_workers_that_lack_something_are_named() -> None:
    head = then(running(), *(unfit(f"host {number}") for number in range(SET_ASIDE + 1)))
    assert [each.host for each in head.life.set_aside] == [f"host {number}" for number in range(SET_ASIDE)]


def test_what_a_worker_says_about_what_it_lacks_is_cut() -> None:
    head = then(running(), unfit("h" * 1_000, "l" * 1_000))
    assert head.life.set_aside == [Unfit("h" * HOST_BYTES, "l" * LACKS_BYTES)]


def test_a_worker_that_can_run_a_package_ends_the_grace_time_and_the_permission_to_run_anyway() -> None:
    head = then(running(), STRANDED, Stranded())
    assert (head.life.stranded_at, head.life.run_anyway) == (None, True)
    head = then(head, STRANDED, Placed(), now=NOW + 1)
    assert (head.life.stranded_at, head.life.run_anyway) == (None, False)
    assert fails_at(head) == NOW + 1 + POLICY.grace_s


def test_a_result_shows_that_a_worker_can_run_a_package_and_an_empty_publication_does_not() -> None:
    head = then(running(), STRANDED)
    assert then(head, published(2, [])).life.stranded_at == NOW
    assert then(head, published(2, [0])).life.stranded_at is None


def test_a_refusal_without_a_message_fails_the_package_with_one_that_names_the_reason() -> None:
    refusal = Published(worker_id="w", executors=1, generation=2, results=[], refused="seal")
    head = then(running(), refusal)
    assert (head.life.state, head.life.reason, head.life.message) == ("failed", "seal", "a worker refused it: seal")


def test_the_message_of_a_worker_that_refuses_a_package_is_kept() -> None:
    refusal = Published(worker_id="w", executors=1, generation=2, results=[], refused="seal", message="seal 7 is wrong")
    assert then(running(), refusal).life.message == "seal 7 is wrong"
