"""A package of somebody else: read here, and otherwise left alone."""

import gc
import threading
from collections.abc import Callable

import pytest

from cloudpar import Pool
from cloudpar.attachment import Attachment
from cloudpar.errors import CloudparError
from cloudpar.session import Session
from sdk.fake_master import TOKEN, FakeMaster


def begun(master: FakeMaster) -> str:
    """A package of three tasks, which somebody started and left."""
    with Pool(master.endpoint, TOKEN) as pool:
        return pool.map(abs, [-1, -2, -3]).detach()


def test_a_pool_does_not_wait_for_what_it_was_attached_to(master: FakeMaster) -> None:
    """Nor does it cancel it, whatever is asked of the pool's own tasks."""
    master.automatic = False
    package_id = begun(master)
    with Pool(master.endpoint, TOKEN) as pool:
        attached, other = pool.attach(package_id), pool.attach(package_id)
        with pytest.raises(TimeoutError):
            attached.results(timeout=0)
        master.run(package_id, range(1))
        assert next(iter(attached)) == 1  # and reads no further
        pool.shutdown(cancel_futures=True)
    assert pool.last_report is None
    assert (master.packages[package_id].state, master.acknowledged) == ("running", set())
    for each in (attached, other):
        with pytest.raises(CloudparError, match=f"the pool ended before package {package_id} did: attach to it"):
            each.results()


def test_a_pool_waits_for_an_attachment_that_is_being_read(master: FakeMaster, monkeypatch: pytest.MonkeyPatch) -> None:
    master.automatic = False
    wait = Session.wait

    def run_and_wait(session: Session) -> None:
        running.start()
        wait(session)
        assert not session.unfinished()

    package_id = begun(master)
    running = threading.Thread(target=master.run, args=(package_id, range(1, 3)))
    monkeypatch.setattr(Session, "wait", run_and_wait)
    with Pool(master.endpoint, TOKEN) as pool:
        values = iter(pool.attach(package_id))
        master.run(package_id, range(1))
        assert next(values) == 1
    running.join()
    assert list(values) == [2, 3]


def test_ctrl_c_lets_go_on_what_a_pool_was_attached_to(
    master: FakeMaster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    master.automatic = False
    package_id = begun(master)
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012
        attached = pool.attach(package_id)
        monkeypatch.setattr("threading.Condition.wait", interrupted_wait(threading.Condition.wait))
        attached.results()
    assert master.packages[package_id].state == "running"
    assert capsys.readouterr().err == ""


def test_ctrl_c_between_two_results_does_not_wait_for_the_rest(master: FakeMaster) -> None:
    """Whoever holds the iterator still, a variable say, reads no further."""
    master.automatic = False
    package_id = begun(master)
    with pytest.raises(KeyboardInterrupt), Pool(master.endpoint, TOKEN) as pool:  # noqa: PT012
        values = iter(pool.attach(package_id))
        master.run(package_id, range(1))
        assert next(values) == 1
        raise KeyboardInterrupt
    assert master.packages[package_id].state == "running"
    with pytest.raises(CloudparError, match="attach to it by another pool"):
        next(values)


@pytest.mark.parametrize("read", [Attachment.results, list], ids=["results", "iterator"])
def test_an_attachment_keeps_a_pool_that_has_no_other_name(
    master: FakeMaster, read: Callable[[Attachment[int]], list[int]]
) -> None:
    master.automatic = False
    package_id = begun(master)
    attached = Pool(master.endpoint, TOKEN).attach(package_id)
    end_dropped_pools()
    master.run(package_id)
    assert read(attached) == [1, 2, 3]
    attached.acknowledge()
    del attached
    end_dropped_pools()
    assert master.acknowledged == {package_id}


def test_an_attachment_of_a_pool_that_is_detached(master: FakeMaster) -> None:
    master.automatic = False
    pool = Pool(master.endpoint, TOKEN)
    attached = pool.attach(begun(master))
    pool.detach()
    with pytest.raises(CloudparError, match="attach to it by another pool"):
        attached.results()


def end_dropped_pools() -> None:
    gc.collect()
    for thread in threading.enumerate():
        if thread.name == "cloudpar-finish":
            thread.join()


def interrupted_wait(wait: Callable[..., bool]) -> Callable[..., bool]:
    """Ctrl-C as soon as the main thread waits."""
    pressed = False

    def instead(self: threading.Condition, timeout: float | None = None) -> bool:
        nonlocal pressed
        if threading.current_thread() is threading.main_thread() and not pressed:
            pressed = True
            raise KeyboardInterrupt
        return wait(self, timeout)

    return instead
