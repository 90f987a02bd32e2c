"""A package that another pool started: read here, and otherwise left unchanged."""

import gc
import threading
from collections.abc import Callable

import pytest

from cloudpar import Pool
from cloudpar._client.open_packages import OpenPackages
from cloudpar.attachment import Attachment
from cloudpar.errors import CloudparError, Gone, NotFound, PackageFailed
from cloudpar_protocol.client_messages import AwaitTasks
from support.fake_master import TOKEN, FakeMaster


def started(master: FakeMaster) -> str:
    """A package of three tasks that an earlier pool has started and left."""
    with Pool(master.endpoint, TOKEN) as pool:
        return pool.map(abs, [-1, -2, -3]).detach()


def test_a_pool_does_not_wait_for_an_attached_package(master: FakeMaster) -> None:
    """It does not cancel the package either, whatever it does with its own tasks."""
    master.automatic = False
    package_id = started(master)
    with Pool(master.endpoint, TOKEN) as pool:
        attached, other = pool.attach(package_id), pool.attach(package_id)
        with pytest.raises(TimeoutError):
            attached.results(timeout=0)
        master.run(package_id, range(1))
        assert next(iter(attached)) == 1  # and does not read on
        pool.shutdown(cancel_futures=True)
    assert pool.last_report is None
    assert (master.packages[package_id].state, master.acknowledged) == ("running", set())
    for each in (attached, other):
        with pytest.raises(CloudparError, match=f"the pool ended before package {package_id} did: attach to it"):
            each.results()


@pytest.mark.parametrize("ended", [True, False])
def test_an_attachment_does_not_wait_for_news_of_the_pools_other_packages(master: FakeMaster, ended: bool) -> None:
    """The master holds the pool's request about its own packages, without knowing that the pool has another."""
    package_id = started(master)
    if not ended:
        master.packages[package_id].state = "running"
    master.automatic, master.holds_longer = False, True
    with Pool(master.endpoint, TOKEN) as pool:
        others = pool.map(abs, [-1])
        master.wait_for(lambda: any(message.hold_s for message in master.received(AwaitTasks)))
        attached = pool.attach(package_id)
        assert [outcome.value for outcome in attached.outcomes(0)] == [1, 2, 3]
        master.end_all()
        assert attached.results() == [1, 2, 3]
        with pytest.raises(PackageFailed):
            next(others)


def test_a_pool_waits_for_an_attachment_that_is_being_read(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    master.automatic = False
    wait = OpenPackages.wait

    def run_and_wait(packages: OpenPackages) -> None:
        running.start()
        wait(packages)
        assert not packages.unfinished()

    package_id = started(master)
    running = threading.Thread(target=master.run, args=(package_id, range(1, 3)))
    monkeypatch.setattr(OpenPackages, "wait", run_and_wait)
    with Pool(master.endpoint, TOKEN) as pool:
        values = iter(pool.attach(package_id))
        master.run(package_id, range(1))
        assert next(values) == 1
    running.join()
    assert list(values) == [2, 3]


def test_ctrl_c_does_not_cancel_an_attached_package(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    master.automatic = False
    package_id = started(master)
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012 - the block's end is what raises, or is tested
        attached = pool.attach(package_id)
        monkeypatch.setattr("threading.Condition.wait", interrupted_wait(threading.Condition.wait))
        attached.results()
    assert master.packages[package_id].state == "running"
    assert capsys.readouterr().err == ""


def test_ctrl_c_between_two_results_does_not_wait_for_the_rest(master: FakeMaster) -> None:
    """A program that still holds the iterator, for example in a variable, does not read on."""
    master.automatic = False
    package_id = started(master)
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012 - the block's end is what raises, or is tested
        values = iter(pool.attach(package_id))
        master.run(package_id, range(1))
        assert next(values) == 1
        raise KeyboardInterrupt
    assert master.packages[package_id].state == "running"
    with pytest.raises(CloudparError, match="attach to it by another pool"):
        next(values)


@pytest.mark.parametrize("read", [Attachment.results, list], ids=["results", "iterator"])
def test_an_attachment_keeps_its_pool_alive(master: FakeMaster, read: Callable[[Attachment[int]], list[int]]) -> None:
    master.automatic = False
    package_id = started(master)
    attached = Pool(master.endpoint, TOKEN).attach(package_id)
    end_dropped_pools()
    master.run(package_id)
    assert read(attached) == [1, 2, 3]
    attached.acknowledge()
    del attached
    end_dropped_pools()
    assert master.acknowledged == {package_id}


def test_an_attachment_of_a_detached_pool_fails_its_reader(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    attached = pool.attach(started(master))
    pool.detach()
    with pytest.raises(CloudparError, match="attach to it by another pool"):
        attached.results()


def test_an_attachment_that_was_acknowledged_before_its_end_waits_for_nothing(master: FakeMaster) -> None:
    master.automatic = False
    with Pool(master.endpoint, TOKEN) as pool:
        attached = pool.attach(started(master))
        attached.acknowledge()
        with pytest.raises(Gone, match="this program has acknowledged the package before"):
            attached.results()
        with pytest.raises(Gone):
            next(iter(attached))


def test_attach_takes_the_first_characters_of_an_id(master: FakeMaster) -> None:
    with Pool(master.endpoint, TOKEN) as pool:
        ids = [pool.map(abs, [-number]).detach() for number in range(12)]
        assert (ids[0], ids[10]) == ("p0", "p10")
        assert pool.attach("p10").results() == [10]
        assert pool.attach("p1").results() == [1]  # a whole id, although it is a prefix of others
        with pytest.raises(NotFound, match="12 packages start with 'p'"):
            pool.attach("p")
        with pytest.raises(NotFound, match="no package 'q'"):
            pool.attach("q")
        with pytest.raises(ValueError, match="the package id is empty"):
            pool.attach("")


def test_an_unknown_id_is_not_found_and_a_deleted_package_is_gone(embedded: Pool) -> None:
    with pytest.raises(NotFound, match=f"package {'0' * 32}: no such package"):
        embedded.attach("0" * 32).results()
    results = embedded.map(abs, [-1])
    assert results.package_id is not None
    assert list(results) == [1]  # and acknowledges it, which is announced to the master when more is submitted or later
    embedded._client.session.acknowledgements.send()
    with pytest.raises(Gone, match="acknowledged by its client"):
        embedded.attach(results.package_id).results()


def end_dropped_pools() -> None:
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "cloudpar-finish":
            thread.join()


def interrupted_wait(wait: Callable[..., bool]) -> Callable[..., bool]:
    """Press Ctrl-C as soon as the main thread waits."""
    pressed = False

    def instead(self: threading.Condition, timeout: float | None = None) -> bool:
        nonlocal pressed
        if threading.current_thread() is threading.main_thread() and not pressed:
            pressed = True
            raise KeyboardInterrupt
        return wait(self, timeout)

    return instead
