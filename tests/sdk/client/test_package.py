"""The client's state machine of a package, with every answer that a master may give."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloudpar._client.package import Package
from cloudpar.errors import Gone, PackageFailed, PythonMismatch
from cloudpar_protocol.client_messages import PackageState, PackageStatus, Progress
from cloudpar_protocol.payloads import BlobRef, TaskResult


def status(
    results: list[TaskResult],
    state: PackageState = "running",
    cursor: int = 1,
    *,
    more: bool = False,
    tasks: int = 3,
    reason: str | None = None,
) -> PackageStatus:
    return PackageStatus(
        package_id="p", state=state, cursor=cursor, more=more, results=results, progress=Progress(tasks=tasks),
        reason=reason, message=reason and f"because of {reason}",
    )  # fmt: skip


def ok(index: int) -> TaskResult:
    return TaskResult(index, "ok", 5, data=b"x")


def large(index: int) -> TaskResult:
    return TaskResult(index, "ok", 5, blob=BlobRef("k", 10, 10 * index))


def phase(package: Package) -> str:
    return package.phase


def running(tasks: int = 3) -> Package:
    package = Package(tasks)
    package.started("p")
    return package


def test_a_package_goes_from_starting_to_running_to_ended() -> None:
    package = Package(3)
    assert phase(package) == "starting"
    package.started("p")
    assert phase(package) == "running"
    assert list(package.take(status([ok(2)])).results) == [ok(2)]
    assert phase(package) == "running"
    news = package.take(status([ok(0), ok(1)], "completed", 2))
    assert list(news.results) == [ok(0), ok(1)]
    assert (phase(package), package.failure, package.cursor) == ("ended", None, 2)


def test_tasks_that_were_cancelled_one_by_one_end_too() -> None:
    package = running()
    news = package.take(msgspec.structs.replace(status([ok(0)]), cancelled=[(1, 3)]))
    assert [(result.index, result.outcome) for result in news.results] == [
        (0, "ok"),
        (1, "cancelled"),
        (2, "cancelled"),
    ]
    assert (phase(package), package.failure) == ("ended", None)


def test_the_codec_is_the_one_of_the_client_and_never_changes() -> None:
    package = Package(3, codec="msgpack")
    package.started("p")
    package.take(status([ok(0)]))
    assert package.codec == "msgpack"
    attached = Package(0)
    attached.started("p")
    attached.take(msgspec.structs.replace(status([ok(0)]), codec="msgpack"))
    attached.take(status([ok(1)]))
    assert attached.codec == "msgpack"


def test_a_package_with_all_results_has_ended_in_any_state() -> None:
    package = running()
    package.take(status([ok(0), ok(1), ok(2)]))
    assert phase(package) == "ended"


def test_a_package_ends_only_after_its_downloads() -> None:
    package = running()
    news = package.take(status([ok(0), large(1), large(2)], "completed"))
    assert list(news.fetches) == [large(1), large(2)]
    assert phase(package) == "running"
    package.fetched(1)
    assert phase(package) == "running"
    package.fetched(1)
    assert phase(package) == "ended"


def test_a_duplicate_of_what_is_being_fetched_is_dropped() -> None:
    package = running()
    package.take(status([large(1)]))
    news = package.take(status([large(1), ok(1)]))
    assert not news.results
    assert not news.fetches


def test_a_failed_package_ends_only_after_its_last_page() -> None:
    package = running()
    package.take(status([ok(0)], "failed", more=True, reason="quota"))
    assert phase(package) == "running"
    news = package.take(status([ok(1)], "failed", 2, reason="quota"))
    assert list(news.results) == [ok(1)]
    assert phase(package) == "ended"
    assert str(package.failure) == "because of quota"


def test_the_reason_of_a_failure_decides_its_exception() -> None:
    package = running()
    package.take(status([], "failed", reason="python"))
    assert isinstance(package.failure, PythonMismatch)


def test_missing_results_of_a_completed_package_are_a_failure() -> None:
    package = running()
    package.take(status([ok(0)], "completed"))
    assert phase(package) == "ended"
    assert isinstance(package.failure, PackageFailed)
    assert "2 of its results never came" in str(package.failure)


def done(status: PackageStatus, count: int) -> PackageStatus:
    """Return the status with this many tasks done at the master."""
    return msgspec.structs.replace(status, progress=msgspec.structs.replace(status.progress, done=count))


@pytest.mark.parametrize("state", ["completed", "failed"])
def test_an_ended_package_with_results_before_the_cursor_is_read_again_from_the_start(state: PackageState) -> None:
    """After a restore of the master's data, results come at positions that this client has read already."""
    package = running()
    package.take(status([ok(0)], cursor=80))
    package.take(done(status([], state, 80), 2))
    assert (phase(package), package.cursor, package.more) == ("running", 0, True)
    news = package.take(done(status([ok(0), ok(2)], state, 50, reason="quota"), 2))
    assert list(news.results) == [ok(2)]
    assert phase(package) == "ended"


def test_results_that_a_second_reading_does_not_bring_are_a_failure() -> None:
    package = running()
    package.take(done(status([ok(0)], "completed", 80), 3))
    package.take(done(status([ok(0)], "completed", 80), 3))
    assert phase(package) == "ended"
    assert "2 of its results never came" in str(package.failure)


def test_an_expired_package_is_not_read_again() -> None:
    package = running()
    package.take(done(status([], "expired"), 3))
    assert isinstance(package.failure, Gone)
    assert phase(package) == "ended"


def test_a_lost_package_takes_no_further_news() -> None:
    package = running()
    error = PackageFailed("gone")
    package.lost(error)
    package.lost(PackageFailed("other"))
    assert not package.take(status([ok(0)])).results
    assert package.failure is error


def test_an_attached_package_learns_its_size_from_the_first_status() -> None:
    package = running(0)
    package.take(status([], tasks=2))
    assert phase(package) == "running"
    package.take(status([ok(1), ok(0)], tasks=2))
    assert (phase(package), package.tasks) == ("ended", 2)


@pytest.mark.parametrize("state", ["failed", "cancelled", "expired"])
def test_every_bad_end_has_a_reason(state: PackageState) -> None:
    package = running()
    package.take(status([], state))
    assert state in str(package.failure)
    assert isinstance(package.failure, Gone) == (state == "expired")


@given(
    n=st.integers(1, 60), seed=st.integers(0, 2**32), repeat=st.floats(0, 0.9), blobs=st.floats(0, 1),
    last=st.sampled_from(["running", "completed", "error"]),
)  # fmt: skip
def test_every_result_is_handed_on_once_in_any_order(
    n: int, seed: int, repeat: float, blobs: float, last: PackageState
) -> None:
    draw = random.Random(seed)  # a repeatable order
    order = draw.sample(range(n), n)
    package, handed, waiting, cursor = running(n), [], 0, 0
    sent: list[TaskResult] = []
    while order:
        page = [
            large(index) if draw.random() < blobs else ok(index)
            for index in (order.pop() for _ in range(draw.randint(1, len(order))))
        ]
        sent += page
        again = [result for result in sent if draw.random() < repeat]
        cursor += 1
        news = package.take(status([*page, *again], "running" if order else last, cursor, tasks=n))
        handed += [result.index for result in (*news.results, *news.fetches)]
        waiting += len(news.fetches)
        if waiting and draw.random() < 0.5:
            package.fetched(waiting)
            waiting = 0
        assert package.cursor == cursor
    assert sorted(handed) == list(range(n))
    if waiting:
        assert phase(package) == "running"
        package.fetched(waiting)
    assert phase(package) == "ended"
    assert package.failure is None
