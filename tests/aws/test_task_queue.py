"""SqsTaskQueue with AWS's answers, beyond what the port's suite tests."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from bench.aws_calls.counts import Counts
from bench.aws_calls.meter import metered
from botocore.exceptions import ClientError, EndpointConnectionError

from cloudpar_master.adapters.aws.fifo_queue import ENTRY_ATTEMPTS
from cloudpar_master.adapters.aws.task_queue import DEAD, LOOK_S, MAIN_FIRST, SqsTaskQueue
from cloudpar_master.ports import LARGEST_RECEIVES, Message, Sending, StaleAttempt
from support.clock import NOW, SetClock

from .in_process import clients_in_process
from .stores import create_queues, name_of
from .stubs import ANY, Stubber, client_error, offline, stubbed

Scripted = tuple[SqsTaskQueue, Stubber]


@pytest.fixture
def scripted(clock: SetClock) -> Iterator[Scripted]:
    client = offline().sqs
    with stubbed(client) as stub:
        yield SqsTaskQueue(client, "live", "dead", clock), stub


def sendings(count: int) -> list[Sending]:
    return [Sending(f"g{number}", f"body {number}") for number in range(count)]


def done(*ids: int) -> list[dict[str, str]]:
    return [{"Id": str(number), "MessageId": "m", "MD5OfMessageBody": "x"} for number in ids]


def taken(*ids: int) -> list[dict[str, str]]:
    return [{"Id": str(number)} for number in ids]


def failed(*ids: int, fault: bool = False, code: str = "InternalError") -> list[dict[str, Any]]:
    return [{"Id": str(number), "SenderFault": fault, "Code": code} for number in ids]


def entry(number: int) -> dict[str, str]:
    name = f"g{number}"
    return {"Id": str(number), "MessageBody": f"body {number}", "MessageGroupId": name, "MessageDeduplicationId": name}


def test_messages_are_sent_ten_at_a_time(scripted: Scripted) -> None:
    queue, stub = scripted
    for part in (range(10), range(10, 20), range(20, 23)):
        expected = {"QueueUrl": "live", "Entries": [entry(number) for number in part]}
        stub.add_response("send_message_batch", {"Successful": done(*part), "Failed": []}, expected)
    assert queue.send(sendings(23)) == [True] * 23


def test_first_chunks_are_sent_before_all_others(clock: SetClock) -> None:
    client = offline().sqs
    with stubbed(client) as stub:
        for url, number in (("express", 1), ("live", 0)):
            expected = {"QueueUrl": url, "Entries": [entry(number) | {"Id": "0"}]}
            stub.add_response("send_message_batch", {"Successful": done(0), "Failed": []}, expected)
        queue = SqsTaskQueue(client, "live", "dead", clock, "express")
        rest, first = sendings(2)
        assert queue.send([rest, first._replace(express=True)]) == [True, True]


def test_failed_entries_of_a_batch_are_sent_again(scripted: Scripted, no_waiting: list[float]) -> None:
    queue, stub = scripted
    stub.add_response("send_message_batch", {"Successful": done(0), "Failed": failed(1, 2)})
    again = {"QueueUrl": "live", "Entries": [entry(1), entry(2)]}
    stub.add_response("send_message_batch", {"Successful": done(2), "Failed": failed(1)}, again)
    stub.add_response("send_message_batch", {"Successful": done(1), "Failed": []})
    assert queue.send(sendings(3)) == [True] * 3
    assert len(no_waiting) == 2


def test_entries_that_fail_repeatedly_are_left_to_the_next_fold(scripted: Scripted, no_waiting: list[float]) -> None:
    queue, stub = scripted
    for _ in range(ENTRY_ATTEMPTS):
        stub.add_response("send_message_batch", {"Successful": [], "Failed": failed(1)})
    assert queue.send(sendings(3)) == [True, False, True]
    assert len(no_waiting) == ENTRY_ATTEMPTS - 1


def test_an_entry_that_the_queue_refuses_counts_as_not_sent(scripted: Scripted) -> None:
    """A chunk that was wrongly marked as sent would be lost."""
    queue, stub = scripted
    bad = failed(1, fault=True, code="InvalidMessageContents")
    stub.add_response("send_message_batch", {"Successful": done(0, 2), "Failed": bad})
    assert queue.send(sendings(3)) == [True, False, True]


@pytest.mark.parametrize("code", ["ThrottlingException", "RequestThrottled", "KmsThrottled"])
def test_an_entry_that_is_throttled_is_sent_again(scripted: Scripted, no_waiting: list[float], code: str) -> None:
    """AWS calls throttling the sender's fault."""
    queue, stub = scripted
    stub.add_response("send_message_batch", {"Successful": done(0), "Failed": failed(1, fault=True, code=code)})
    stub.add_response("send_message_batch", {"Successful": done(1), "Failed": []})
    assert queue.send(sendings(2)) == [True] * 2
    assert len(no_waiting) == 1


def test_a_throttled_batch_is_for_the_next_fold_and_the_others_go(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_client_error("send_message_batch", "ThrottlingException")
    stub.add_response("send_message_batch", {"Successful": done(10, 11), "Failed": []})
    assert queue.send(sendings(12)) == [False] * 10 + [True] * 2


def test_a_missing_right_is_an_error(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_client_error("send_message_batch", "AccessDenied")
    with pytest.raises(Exception, match="AccessDenied"):
        queue.send(sendings(1))


def received(*numbers: int, receives: int = 1) -> dict[str, Any]:
    attributes = {"ApproximateReceiveCount": str(receives), "SentTimestamp": str(round((NOW - 2.5) * 1000))}
    return {
        "Messages": [
            {"Body": f"body {number}", "ReceiptHandle": f"r{number}", "Attributes": attributes} for number in numbers
        ]
    }


def asked(limit: int, attempt_id: str, visibility_s: int = 60) -> dict[str, Any]:
    return {
        "QueueUrl": "live",
        "MaxNumberOfMessages": limit,
        "VisibilityTimeout": visibility_s,
        "ReceiveRequestAttemptId": attempt_id,
        "MessageSystemAttributeNames": ["ApproximateReceiveCount", "SentTimestamp"],
        "WaitTimeSeconds": 0,
    }


def test_an_attempt_has_parts_of_ten(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_response("receive_message", received(*range(10)), asked(10, "attempt#0"))
    stub.add_response("receive_message", received(*range(10, 20)), asked(10, "attempt#1"))
    stub.add_response("receive_message", received(20), asked(5, "attempt#2"))
    messages = queue.receive(25, 59.1, "attempt")
    assert messages[0] == Message("body 0", "r0", 1, 2_500_000)
    assert [message.body for message in messages] == [f"body {number}" for number in range(21)]


def test_a_part_that_is_not_full_is_the_last(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_response("receive_message", received(*range(9)), ANY_PARAMETERS)
    assert len(queue.receive(100, 60.0, "attempt")) == 9


def test_messages_of_earlier_parts_survive_a_failing_part(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_response("receive_message", received(*range(10)))
    stub.add_client_error("receive_message", "OverLimit", http_status_code=403)
    assert len(queue.receive(20, 60.0, "attempt")) == 10
    stub.add_client_error("receive_message", "OverLimit", http_status_code=403)
    with pytest.raises(Exception, match="OverLimit"):
        queue.receive(20, 60.0, "attempt")


ANY_PARAMETERS = {
    "QueueUrl": ANY, "MaxNumberOfMessages": ANY, "VisibilityTimeout": ANY, "ReceiveRequestAttemptId": ANY,
    "MessageSystemAttributeNames": ANY,
    "WaitTimeSeconds": ANY,
}  # fmt: skip


@pytest.mark.parametrize("attempt_id", ["x" * 200, "é", "a\nb", "a b"])
def test_an_attempt_id_of_any_kind(attempt_id: str) -> None:
    sent: list[str] = []

    class Listening:
        def receive_message(self, **given: Any) -> dict[str, Any]:
            sent.append(given["ReceiveRequestAttemptId"])
            return {}

    queue = SqsTaskQueue(Listening(), "live", "dead", SetClock())  # type: ignore[arg-type]
    for _ in range(2):
        assert queue.receive(1, 60.0, attempt_id) == []
    assert sent[0] == sent[1]
    assert len(sent[0]) <= 128
    assert sent[0].isascii()
    assert sent[0].isprintable()
    assert " " not in sent[0]


def test_the_wait_of_a_message_that_is_visible_again_is_unknown(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_response("receive_message", received(1, receives=2))
    assert queue.receive(1, 60.0, "attempt") == [Message("body 1", "r1", 2, 0)]


def test_receipts_that_expired_are_ignored(scripted: Scripted) -> None:
    queue, stub = scripted
    bad = failed(0, fault=True, code="ReceiptHandleIsInvalid")
    stub.add_response("delete_message_batch", {"Successful": taken(1), "Failed": bad})
    queue.delete(["old", "good", "old"])
    bad = failed(0, fault=True, code="InvalidParameterValue")
    stub.add_response("change_message_visibility_batch", {"Successful": taken(1), "Failed": bad})
    queue.extend(["old", "good"], 60.0)


def test_failed_entries_of_deleting_and_extending_are_sent_again(scripted: Scripted, no_waiting: list[float]) -> None:
    queue, stub = scripted
    receipts = [f"r{number}" for number in range(12)]
    calls: list[tuple[str, dict[str, int]]] = [
        ("delete_message_batch", {}), ("change_message_visibility_batch", {"VisibilityTimeout": 60}),
    ]  # fmt: skip
    for name, more in calls:
        again = [{"Id": str(number), "ReceiptHandle": f"r{number}", **more} for number in (3, 7)]
        stub.add_response(name, {"Successful": taken(0), "Failed": failed(3, 7)})
        stub.add_response(name, {"Successful": taken(3, 7), "Failed": []}, {"QueueUrl": "live", "Entries": again})
        stub.add_response(name, {"Successful": taken(10, 11), "Failed": []})
    queue.delete(receipts)
    queue.extend(receipts, 60.0)
    assert len(no_waiting) == 2


def test_a_delete_that_never_succeeds_is_left_to_the_queue(scripted: Scripted, no_waiting: list[float]) -> None:
    queue, stub = scripted
    for _ in range(ENTRY_ATTEMPTS):
        stub.add_response("delete_message_batch", {"Successful": [], "Failed": failed(0)})
    queue.delete(["r"])
    assert no_waiting


def test_a_message_is_hidden_for_twelve_hours_at_most(scripted: Scripted) -> None:
    queue, stub = scripted
    expected = {"QueueUrl": "live", "Entries": [{"Id": "0", "ReceiptHandle": "r", "VisibilityTimeout": 43_200}]}
    stub.add_response("change_message_visibility_batch", {"Successful": taken(0), "Failed": []}, expected)
    queue.extend(["r"], 100_000.0)


def test_a_dead_letters_receipt_goes_to_its_own_queue(scripted: Scripted) -> None:
    queue, stub = scripted
    expected = {"QueueUrl": "dead", "MaxNumberOfMessages": 10, "ReceiveRequestAttemptId": ANY}
    stub.add_response("receive_message", received(1, receives=9), expected)
    (message,) = queue.dead(50)
    assert message == Message("body 1", f"{DEAD}r1", LARGEST_RECEIVES, 0)
    for url, receipt in (("live", "r2"), ("dead", "r1")):
        expected = {"QueueUrl": url, "Entries": [{"Id": "0", "ReceiptHandle": receipt}]}
        stub.add_response("delete_message_batch", {"Successful": taken(0), "Failed": []}, expected)
    queue.delete([message.receipt, "r2"])


def test_a_queue_that_cannot_be_reached_takes_no_chunks(clock: SetClock) -> None:
    class Unreachable:
        def __getattr__(self, name: str) -> Any:
            def call(**_: Any) -> None:
                raise EndpointConnectionError(endpoint_url="x")

            return call

    queue = SqsTaskQueue(Unreachable(), "live", "dead", clock)  # type: ignore[arg-type]
    assert queue.send(sendings(2)) == [False, False]
    queue.delete(["r"])


class ThreeQueues(NamedTuple):
    """Queues on moto, and the counts of the calls for them."""

    client: Any
    clock: SetClock
    counts: Counts
    main: str
    dead: str
    express: str

    def queue(self, client: Any = None) -> SqsTaskQueue:
        """The view of one process, perhaps by another client."""
        return SqsTaskQueue(client or self.client, self.main, self.dead, self.clock, self.express)

    def calls(self, operation: str) -> int:
        """How many calls there were."""
        return self.counts.of["set up", f"SQS {operation}"]


@pytest.fixture
def three(clock: SetClock, tmp_path: Path) -> Iterator[ThreeQueues]:
    counts, client = Counts(), clients_in_process(clock).sqs
    urls = create_queues(clients_in_process(clock), name_of(tmp_path))
    with metered(counts, SQS=client):
        yield ThreeQueues(client, clock, counts, *urls)
    for url in urls:
        client.delete_queue(QueueUrl=url)


def attempt(queue: int) -> Iterator[str]:
    """Ids of attempts that look into the express queue first (0), or into the main queue first."""
    return (name for name in map(str, range(10_000)) if (crc32(name.encode()) % MAIN_FIRST == 0) == bool(queue))


def bodies(messages: list[Message]) -> list[str]:
    return [message.body for message in messages]


LONG = [Sending(f"long-{number}", f"long-{number}") for number in range(100)]
NEW = Sending("new", "new", express=True)


def test_a_first_chunk_is_received_before_what_was_sent_before_it(three: ThreeQueues) -> None:
    queue = three.queue()
    queue.send([*LONG, NEW])
    names = attempt(0)
    assert bodies(queue.receive(1, 60.0, next(names))) == ["new"]
    assert bodies(queue.receive(2, 60.0, next(names))) == ["long-0", "long-1"]


def test_a_stream_of_first_chunks_leaves_every_fourth_attempt_to_others(three: ThreeQueues) -> None:
    queue = three.queue()
    queue.send([*LONG, *(Sending(f"new-{number}", f"new-{number}", express=True) for number in range(250))])
    taken = [bodies(queue.receive(1, 60.0, str(number)))[0] for number in range(200)]
    assert 30 <= sum(body.startswith("long") for body in taken) <= 70


def test_a_busy_worker_is_handed_first_chunks_only(three: ThreeQueues) -> None:
    queue = three.queue()
    queue.send(LONG)
    assert queue.receive(10, 60.0, "a", ["long"]) == []
    queue.send([NEW])
    assert bodies(queue.receive(10, 60.0, "b", ["long"])) == ["new"]


def test_a_worker_that_cannot_run_the_first_chunks_gets_others(three: ThreeQueues) -> None:
    queue = three.queue()
    queue.send([LONG[0], NEW])
    assert bodies(queue.receive(10, 60.0, "a", express=False)) == ["long-0"]
    assert queue.receive(10, 60.0, "b", ["busy"], express=False) == []


def test_receipts_go_back_to_their_queue(clock: SetClock) -> None:
    client = offline().sqs
    with stubbed(client) as stub:
        queue = SqsTaskQueue(client, "live", "dead", clock, "express")
        stub.add_response("receive_message", received(1), asked(1, "b#0") | {"QueueUrl": "express"})
        (message,) = queue.receive(1, 60.0, "b", ["busy"])
        for name, more in (
            ("delete_message_batch", {}),
            ("change_message_visibility_batch", {"VisibilityTimeout": 60}),
        ):
            for url, receipt in (("express", "r1"), ("live", "r2")):
                entry = {"Id": "0", "ReceiptHandle": receipt, **more}
                stub.add_response(name, {"Successful": taken(0), "Failed": []}, {"QueueUrl": url, "Entries": [entry]})
        queue.delete([message.receipt, "r2"])
        queue.extend([message.receipt, "r2"], 60.0)


def test_a_repeated_attempt_looks_into_both_queues(clock: SetClock) -> None:
    """At first only the main queue had a message; the repeated attempt must bring it again."""
    client = offline().sqs
    with stubbed(client) as stub:
        queue = SqsTaskQueue(client, "live", "dead", clock, "express")
        name = next(attempt(0))
        stub.add_response("receive_message", {}, asked(1, f"{name}#0") | {"QueueUrl": "express"})
        stub.add_response("receive_message", received(1), asked(1, f"{name}#0"))
        assert bodies(queue.receive(1, 60.0, name)) == ["body 1"]
        clock.move(1.0)
        stub.add_response("receive_message", received(2), asked(1, f"{name}#0") | {"QueueUrl": "express"})
        stub.add_response("receive_message", received(1), asked(1, f"{name}#0"))
        assert bodies(queue.receive(1, 60.0, name, again=True)) == ["body 2", "body 1"]


def test_messages_that_this_process_has_just_sent_are_looked_for_on_all_servers(clock: SetClock) -> None:
    """Only in the queue that got them, and only in the first call: SQS waits until it has a message."""
    client = offline().sqs
    with stubbed(client) as stub:
        queue = SqsTaskQueue(client, "live", "dead", clock, "express")
        stub.add_response("send_message_batch", {"Successful": done(*range(10)), "Failed": []})
        queue.send(sendings(10))
        stub.add_response("receive_message", {}, asked(10, "a#0") | {"QueueUrl": "express"})
        waiting = asked(10, "a#0") | {"WaitTimeSeconds": 1}
        stub.add_response("receive_message", received(*range(10)), waiting)
        stub.add_response("receive_message", received(10), asked(5, "a#1"))
        assert len(queue.receive(15, 60.0, "a", sent=True)) == 11


def test_a_queue_without_messages_of_this_process_is_not_waited_for(clock: SetClock) -> None:
    client = offline().sqs
    with stubbed(client) as stub:
        queue = SqsTaskQueue(client, "live", "dead", clock, "express")
        for url in ("express", "live"):
            stub.add_response("receive_message", {}, asked(10, "b#0") | {"QueueUrl": url})
        assert queue.receive(10, 60.0, "b", sent=True) == []


def test_a_queue_that_accepted_no_message_is_not_waited_for(clock: SetClock, no_waiting: list[float]) -> None:
    """SQS would make the caller wait for a second, although the queue has nothing."""
    client = offline().sqs
    with stubbed(client) as stub:
        queue = SqsTaskQueue(client, "live", "dead", clock)
        for _ in range(ENTRY_ATTEMPTS):
            stub.add_response("send_message_batch", {"Successful": [], "Failed": failed(0)})
        assert queue.send(sendings(1)) == [False]
        stub.add_response("receive_message", {}, asked(10, "c#0"))
        assert queue.receive(10, 60.0, "c", sent=True) == []
    assert no_waiting


def test_an_empty_express_queue_costs_a_busy_process_few_calls(clock: SetClock, three: ThreeQueues) -> None:
    queue = three.queue()
    queue.send(LONG)
    before = three.calls("ReceiveMessage")
    for number in range(90):
        assert queue.receive(1, 60.0, str(number))
        clock.move(0.01)
    assert three.calls("ReceiveMessage") - before <= 90 + 6


def test_a_busy_worker_hears_of_first_chunks_by_one_look_a_second(clock: SetClock, three: ThreeQueues) -> None:
    queue = three.queue()
    sender = three.queue()
    assert not queue.express_waits()
    sender.send([NEW])
    assert not queue.express_waits()
    clock.move(LOOK_S)
    assert queue.express_waits()
    assert three.calls("GetQueueAttributes") == 2


def test_a_worker_that_takes_the_last_first_chunk_hears_of_no_other(three: ThreeQueues) -> None:
    """Otherwise it would ask again at once, and its executor would wait for the answers."""
    queue = three.queue()
    queue.send([NEW])
    assert queue.express_waits()
    assert bodies(queue.receive(2, 60.0, "a", ["busy"])) == ["new"]
    assert not queue.express_waits()
    assert three.calls("GetQueueAttributes") == 0


class Failing:
    """SQS with one queue that refuses every call of a worker."""

    def __init__(self, client: Any, code: str, url: str) -> None:
        self._client = client
        self._code = code
        self._url = url
        self.refused = 0
        self.send_message_batch = client.send_message_batch

    def _ask(self, url: str) -> None:
        if url == self._url:
            self.refused += 1
            raise client_error(self._code)

    def receive_message(self, **asked: Any) -> Any:
        self._ask(asked["QueueUrl"])
        return self._client.receive_message(**asked)

    def get_queue_attributes(self, **asked: Any) -> Any:
        self._ask(asked["QueueUrl"])
        return self._client.get_queue_attributes(**asked)


@pytest.mark.parametrize("code", ["RequestThrottled", "OverLimit", "AccessDenied", "QueueDoesNotExist"])
@pytest.mark.parametrize(("fails", "body"), [("express", "long-0"), ("main", "new")])
@pytest.mark.parametrize("first", ["the express queue", "the main queue"])
@pytest.mark.parametrize("again", [False, True])
def test_while_one_queue_fails_the_other_is_served(
    three: ThreeQueues, code: str, fails: str, body: str, first: str, *, again: bool
) -> None:
    """The messages that came are leased: an error would hide them from all workers for the time of a lease."""
    queue = three.queue(Failing(three.client, code, getattr(three, fails)))
    queue.send([LONG[0], NEW])
    name = next(attempt(first == "the main queue"))
    assert bodies(queue.receive(1, 60.0, name, again=again)) == [body]


def test_a_queue_that_fails_is_an_error_if_the_other_one_is_empty(three: ThreeQueues) -> None:
    queue = three.queue(Failing(three.client, "AccessDenied", three.main))
    queue.send([LONG[0]])
    with pytest.raises(Exception, match="AccessDenied"):
        queue.receive(1, 60.0, "a")


def test_publications_are_answered_while_the_express_queue_fails(three: ThreeQueues) -> None:
    client = Failing(three.client, "QueueDoesNotExist", three.express)
    queue = three.queue(client)
    assert not any(queue.express_waits() for _ in range(100))
    assert client.refused == 1


REFUSED = (
    "Value a#0 for parameter ReceiveRequestAttemptId is invalid. Reason: The receiveRequestAttemptId is not valid "
    "anymore since the receive call is not retryable."
)


def test_an_attempt_that_aws_does_not_repeat_is_stale(scripted: Scripted) -> None:
    queue, stub = scripted
    stub.add_client_error("receive_message", "InvalidParameterValue", REFUSED)
    with pytest.raises(StaleAttempt):
        queue.receive(1, 60.0, "a")
    stub.add_client_error("receive_message", "InvalidParameterValue", "Value -1 for parameter VisibilityTimeout")
    with pytest.raises(ClientError, match="VisibilityTimeout"):
        queue.receive(1, 60.0, "b")


def test_without_an_express_queue_all_chunks_go_by_the_main_one(three: ThreeQueues) -> None:
    """Functions may get their new code some moments before their new environment."""
    queue = SqsTaskQueue(three.client, three.main, three.dead, three.clock)
    queue.send([*LONG[:1], NEW])
    assert not queue.express_waits()
    assert bodies(queue.receive(10, 60.0, "a", ["busy"])) == ["long-0", "new"]
