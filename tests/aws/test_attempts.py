"""The stand-in in the tests of crashes and bad days repeats an attempt to receive as AWS documents it:

as long as none of its messages was deleted or changed.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from aws.crash.breaking import AwsFuse
from aws.in_process import in_process, remove, watched_by
from cloudpar_master.ports import StaleAttempt
from master.conformance import test_queue_delivery as suite
from master.conformance.test_task_queue import send
from support.clock import SetClock
from support.stores import Stores

from .replies import sqs_error


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock) -> Iterator[Stores]:
    with in_process(tmp_path, clock) as stores:
        yield stores
    remove(tmp_path)


@pytest.mark.parametrize(
    "test",
    [
        lambda stores, _: suite.test_an_attempt_again_brings_the_same(stores, stores),
        suite.test_messages_that_a_repeated_attempt_brings_are_hidden_again,
        lambda stores, _: suite.test_an_attempt_that_brought_nothing_may_bring_something(stores),
        suite.test_an_attempt_does_not_bring_messages_of_another,
        suite.test_an_attempt_that_is_repeated_too_late_is_a_new_one,
    ],
)
def test_the_ports_tests_of_attempts_pass(
    stores: Stores, clock: SetClock, test: Callable[[Stores, SetClock], None]
) -> None:
    test(stores, clock)


@pytest.mark.parametrize("deed", ["delete", "extend"])
def test_an_attempt_whose_messages_were_changed_is_refused(stores: Stores, deed: str) -> None:
    send(stores, "g1", "g2", "g3")
    first, _ = stores.queue.receive(2, 60.0, "attempt")
    if deed == "delete":
        stores.queue.delete([first.receipt])
    else:
        stores.queue.extend([first.receipt], 120.0)
    with pytest.raises(StaleAttempt):
        stores.queue.receive(2, 60.0, "attempt")
    assert [message.body for message in stores.queue.receive(2, 60.0, "another")] == ["body of g3"]


class LostReply(AwsFuse):
    """Loses the reply to the first request, which is carried out."""

    lost = 0

    def sent(self, request: AWSPreparedRequest) -> AWSResponse | None:
        self.lost += 1
        return sqs_error("InternalError", 500).to(request.url) if self.lost == 1 else None


def test_a_dead_letter_whose_reply_got_lost_comes_again(
    stores: Stores, clock: SetClock, no_waiting: list[float]
) -> None:
    send(stores, "g")
    suite.lose(stores, clock)
    watcher: Any = LostReply()
    with watched_by(watcher):
        (dead,) = stores.queue.dead(10)
    assert (dead.body, watcher.lost) == ("body of g", 2)
