"""When the master is asked for news."""

import pytest

from cloudpar import Pool
from cloudpar._client import awaiter
from cloudpar_protocol.client_messages import AwaitTasks
from sdk.fake_master import FakeMaster


def test_an_answer_to_a_question_that_was_not_to_be_held_delays_no_news_of_a_later_package(
    pool: Pool, master: FakeMaster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a package is being started, the pool asks without being held. Such an answer names a pause, as those of a
    master do that never holds: with that, each package of a stream came 0.1 s late."""
    monkeypatch.setattr(awaiter, "NEW_PACKAGE_S", 3600.0)
    master.automatic, master.retry_after_s = False, 3600.0
    asker = pool._client.session._awaiter
    first = pool.map(abs, [-1])
    master.wait_for(lambda: master.seen["await_tasks"])
    asker.start_begins()  # of a package whose start takes long
    second = pool.map(abs, [-2])
    master.wait_for(lambda: any(isinstance(each, AwaitTasks) and not each.hold_s for each in master.messages))
    asker.start_ends(None)
    third = pool.map(abs, [-3], timeout=30)
    master.run("p2")
    assert next(third) == 3
    master.run("p0")
    master.run("p1")
    assert (next(first), next(second)) == (1, 2)
