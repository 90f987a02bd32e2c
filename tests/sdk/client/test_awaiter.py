"""When the client asks the master for news."""

import pytest

from cloudpar import Pool
from cloudpar._client import awaiter
from cloudpar_protocol.client_messages import AwaitTasks
from support.fake_master import FakeMaster


def test_the_pause_of_an_unheld_answer_does_not_delay_news_of_the_next_package(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a package starts, the pool's requests must not be held. Answers to these name a pause, like those of a
    master that never holds. With that pause, each package of a stream came 0.1 s late."""
    monkeypatch.setattr(awaiter, "NEW_PACKAGE_S", 3600.0)
    master.automatic, master.retry_after_s = False, 3600.0
    asker = pool._client.session._awaiter
    first = pool.map(abs, [-1])
    master.wait_for(lambda: master.seen["await_tasks"])
    asker.start_requested()  # the start of a package takes long
    second = pool.map(abs, [-2])
    master.wait_for(lambda: any(not each.hold_s for each in master.received(AwaitTasks)))
    asker.start_done(None)
    third = pool.map(abs, [-3], timeout=30)
    master.run("p2")
    assert next(third) == 3
    master.run("p0")
    master.run("p1")
    assert (next(first), next(second)) == (1, 2)
