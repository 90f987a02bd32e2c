from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cloudpar_master.core.events import GaveBack
from cloudpar_master.ports import AccountRecord, Message, StaleAttempt
from cloudpar_master.services.receiver import STALE_ROUNDS
from cloudpar_protocol import codec
from cloudpar_protocol.limits import (
    BODY_BYTES,
    INLINE_CODE_BYTES,
    INLINE_DATA_BYTES,
    INLINE_ITEM_BYTES,
    RETRIEVED_CHUNKS,
)
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, RangeData, TaskCode
from cloudpar_protocol.worker_messages import ExtendLeases, LeaseRef, RetrieveTasks, RetrieveTasksReply
from support.packages import forget
from support.watched_world import WatchedWorld
from support.world import CODE, POLICY, World, master, publication


def as_on_aws(world: World) -> World:
    """Return a world of the same stores, whose master leaves the chunks of ended packages in the queue."""
    watched = WatchedWorld(world)
    watched.ports["queue"].instead["withdraw"] = lambda *_: []
    return watched


def start_stale(world: World, account: AccountRecord, **changes: Any) -> None:
    """Start and cancel a package whose chunks stay in the queue."""
    as_on_aws(world).cancel(account, world.start(account, **changes))


def test_a_lease_has_everything_that_a_worker_needs(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=12, call="args", task_timeout_s=7.5, data=RangeData(3, 2))
    world.clock.move(0.25)
    lease = world.lease()
    assert (lease.package_id, lease.start, lease.end, lease.ranges) == (package_id, 0, 5, [(0, 5)])
    assert (lease.attempt, lease.account, lease.lease_s) == (1, ann.account_id, POLICY.lease_s)
    assert (lease.code, lease.code_link, lease.data, lease.data_link) == (CODE, None, RangeData(3, 2), None)
    assert (lease.tasks, lease.call, lease.python, lease.codec) == (12, "args", "3.11", "pickle")
    assert (lease.mean_us, lease.wait_us, lease.task_timeout_s) == (0, 250_000, 7.5)
    assert lease.budget_us == ann.granted_us


def test_a_task_may_run_no_longer_than_the_operator_says(world: World, ann: AccountRecord) -> None:
    world.start(ann, task_timeout_s=1e6)
    assert world.lease().task_timeout_s == POLICY.task_timeout_s


def test_payloads_in_blobs_come_with_links(world: World, ann: AccountRecord) -> None:
    code = TaskCode("0" * 64, blob=BlobRef(f"code/{ann.account_id}/{'0' * 64}", size=9))
    data = BlobData(BlobRef(f"data/{ann.account_id}/d", size=500))
    for key in (f"code/{ann.account_id}/{'0' * 64}", data.blob.key):
        world.put(key)
    world.start(ann, code=code, data=data)
    lease = world.lease()
    assert lease.code_link is not None
    assert lease.data_link is not None
    assert {lease.code_link.method, lease.data_link.method} == {"GET"}


def test_a_lease_has_only_the_inline_data_of_its_tasks(world: World, ann: AccountRecord) -> None:
    world.start(ann, data=InlineData([str(index).encode() for index in range(10)]))
    lease = world.lease()
    world.publish(publication(lease, [1, 3]))
    world.clock.move(POLICY.lease_s + 1)
    again = next(each for each in world.retrieve() if each.start == 0)
    assert (again.ranges, again.data) == ([(0, 1), (2, 3), (4, 5)], InlineData([b"0", b"2", b"4"]))


def test_an_idle_worker_opens_the_window(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=1_000)
    assert len(world.retrieve()) == POLICY.first_window
    assert len(world.retrieve(executors=3)) == 3
    assert world.head(package_id).pace.window == POLICY.first_window + 3


def test_idle_workers_open_only_as_many_windows_as_they_need(tmp_path: Path) -> None:
    with master(tmp_path, replace(POLICY, open_packages=2)) as world:
        ann = world.account("ann")
        packages = [world.start(ann, tasks=1_000) for _ in range(5)]
        while len(world.retrieve(executors=1)) > 1:
            pass
        assert [world.head(package_id).pace.window for package_id in packages] == [9, 8, 0, 0, 0]


def test_a_retrieval_without_work_says_when_to_send_the_next(world: World) -> None:
    request = RetrieveTasks(attempt_id="1", worker_id="w", executors=2, chunks=4)
    assert world.worker.retrieve_tasks(request).retry_after_s == 0.2
    for number in range(30):
        reply = world.worker.retrieve_tasks(replace(request, worker_id=f"w{number}", attempt_id=f"{number}"))
    assert reply.retry_after_s == 31 / 8


def test_a_message_of_finished_tasks_is_deleted(world: World, ann: AccountRecord) -> None:
    """The publication could not delete it, since its receipt had run out."""
    world.start(ann, tasks=5)
    slow = world.lease()
    world.clock.move(POLICY.lease_s + 1)
    as_on_aws(world).publish(publication(replace(slow, receipt="expired")))
    assert world.backend.queue.waiting() == 1
    assert world.retrieve() == []
    world.clock.move(POLICY.lease_s + 1)
    assert world.backend.queue.waiting() == 0


def test_a_message_of_a_forgotten_package_is_deleted(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    forget(world.backend.packages, package_id)
    assert world.retrieve() == []
    world.clock.move(POLICY.lease_s + 1)
    assert world.backend.queue.waiting() == 0


def test_tasks_given_back_are_not_leased_by_the_old_message(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, tasks=5)
    world.backend.packages.append(package_id, [("g", GaveBack(generation=2, ranges=[(3, 5)]))])
    world.worker._folding.advance(package_id)
    assert [lease.ranges for lease in world.retrieve()] == [[(0, 3)], [(3, 5)]]


def test_a_chunk_is_found_behind_stale_ones(world: World, ann: AccountRecord) -> None:
    start_stale(world, ann, chunksize=1)
    wanted = world.start(ann)
    (lease,) = world.retrieve(chunks=1)
    assert lease.package_id == wanted


def test_only_chunks_that_were_just_cut_are_worth_a_longer_look(world: World, ann: AccountRecord) -> None:
    """SQS may miss messages that were just sent. A longer look into an empty queue costs a second of a function."""
    watched, looks = WatchedWorld(world), list[bool]()

    def receive(*asked: Any, sent: bool = False, **more: Any) -> list[Message]:
        looks.append(sent)
        return world.backend.queue.receive(*asked, sent=sent, **more)

    watched.ports["queue"].instead["receive"] = receive
    watched.retrieve()
    assert looks == [False]
    looks.clear()
    world.start(ann, 1_000, chunksize=1)
    while watched.retrieve() and True not in looks:
        pass
    assert looks[-2:] == [False, True]


def test_an_attempt_is_not_repeated_once_its_messages_are_deleted(world: World, ann: AccountRecord) -> None:
    """AWS repeats an attempt only while none of its messages has changed."""
    watched, attempts = WatchedWorld(world), list[str]()

    def receive(limit: int, visibility_s: float, attempt_id: str, *asked: Any, **more: Any) -> list[Message]:
        attempts.append(attempt_id)
        return world.backend.queue.receive(limit, visibility_s, attempt_id, *asked, **more)

    watched.ports["queue"].instead["receive"] = receive
    for _ in range(2):
        start_stale(world, ann)
    package_id = world.start(ann)
    (lease,) = watched.retrieve(chunks=1, attempt="a")
    assert lease.package_id == package_id
    assert attempts == ["a", "a+1", "a+2"]
    (again,) = watched.retrieve(chunks=1, attempt="a")
    assert (again.package_id, again.start, again.attempt) == (package_id, lease.start, 1)
    assert attempts[3:] == ["a+2"]


def test_a_repeated_request_at_another_process_brings_the_same(world: World, ann: AccountRecord) -> None:
    """That process does not know that messages of the attempt were deleted, but AWS refuses the attempt."""
    for _ in range(2):
        start_stale(world, ann)
    world.start(ann)
    (lease,) = world.retrieve(chunks=1, attempt="a")
    other = WatchedWorld(world)

    def receive(limit: int, visibility_s: float, attempt_id: str, *asked: Any, **more: Any) -> list[Message]:
        if attempt_id in {"a", "a+1"}:
            raise StaleAttempt
        return world.backend.queue.receive(limit, visibility_s, attempt_id, *asked, **more)

    other.ports["queue"].instead["receive"] = receive
    (again,) = other.retrieve(chunks=1, attempt="a")
    assert (again.package_id, again.start, again.attempt) == (lease.package_id, lease.start, 1)


def test_a_worker_that_met_only_stale_chunks_may_retry_at_once(world: World, ann: AccountRecord) -> None:
    for _ in range(STALE_ROUNDS):
        start_stale(world, ann, chunksize=1)
    request = RetrieveTasks(worker_id="w", attempt_id="a", executors=1, chunks=1)
    replies = [world.worker.retrieve_tasks(request) for _ in range(20)]
    assert not any(reply.leases for reply in replies)
    assert replies[0].retry_after_s == 0
    assert replies[-1].retry_after_s > 0


def test_a_cancelled_package_settles_once_its_queue_is_empty(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann, chunksize=1)
    lease = world.lease()
    world.cancel(ann, package_id)
    assert world.retrieve() == []
    assert not world.head(package_id).life.settled
    world.publish(publication(lease, [0], outcome="cancelled", duration_us=70, closes=True))
    assert world.head(package_id).life.settled
    assert world.record(ann.account_id).spent_us == 70


def test_the_largest_chunks_of_one_answer_fit_into_a_body(world: World) -> None:
    """A function cannot answer more than a body: such chunks would be lost each time."""
    code = TaskCode("0" * 64, inline=b"c" * INLINE_CODE_BYTES)
    data = InlineData([b"d" * (INLINE_DATA_BYTES - INLINE_ITEM_BYTES)])
    for number in range(20):
        world.start(world.account(f"user {number}"), 1, code=code, data=data)
    answers = []
    while leases := world.retrieve():
        answers.append(RetrieveTasksReply(leases=leases, retry_after_s=0.0))
    assert sum(len(answer.leases) for answer in answers) == 20
    assert max(len(answer.leases) for answer in answers) == RETRIEVED_CHUNKS
    assert max(len(codec.encode(answer)) for answer in answers) <= BODY_BYTES


def test_a_repeated_request_that_two_queues_answer_brings_at_most_one_answer_of_chunks(
    world: World, ann: AccountRecord
) -> None:
    for _ in range(10):
        world.start(ann, tasks=5, chunksize=1)
    watched = WatchedWorld(world)

    def receive(limit: int, *asked: Any, **more: Any) -> list[Message]:
        return world.backend.queue.receive(2 * limit, *asked, **more)

    watched.ports["queue"].instead["receive"] = receive
    assert len(ask(watched, chunks=100, again=True).leases) == RETRIEVED_CHUNKS


def ask(world: World, **changes: Any) -> RetrieveTasksReply:
    fields: dict[str, Any] = {"attempt_id": f"attempt {next(world.numbers)}", "worker_id": "w", "executors": 2}
    return world.worker.retrieve_tasks(RetrieveTasks(**({"chunks": 4} | fields | changes)))


def test_a_peek_says_whether_other_packages_wait_and_takes_nothing(world: World, ann: AccountRecord) -> None:
    own, other = world.start(ann), world.start(ann)
    assert ask(world, peek=True, besides=[own]).waiting
    assert not ask(world, peek=True, besides=[own, other]).waiting
    assert not ask(world, peek=True, besides=[own]).leases
    assert len(world.retrieve_all()) == 4
    assert not ask(world, peek=True).waiting


def test_a_peek_sees_a_package_that_no_worker_can_run(world: World, ann: AccountRecord) -> None:
    package_id = world.start(ann)
    assert ask(world, peek=True, set_aside=[package_id], pythons=["3.11"]).waiting


def test_chunks_of_packages_in_besides_are_not_handed_out(world: World, ann: AccountRecord) -> None:
    own, other = world.start(ann), world.start(ann)
    reply = ask(world, besides=[own], chunks=1)
    assert [lease.package_id for lease in reply.leases] == [other]
    assert reply.waiting
    reply = ask(world, besides=[own])
    assert [lease.package_id for lease in reply.leases] == [other]
    assert not reply.waiting


def test_a_worker_with_work_opens_no_window_and_does_not_count_as_idle(world: World, ann: AccountRecord) -> None:
    own = world.start(ann, tasks=1_000)
    leases = world.retrieve()
    window = world.head(own).pace.window
    assert not ask(world, besides=[own], worker_id="other").leases
    assert not ask(world, peek=True, worker_id="other").waiting
    assert world.head(own).pace.window == window
    assert not world.publish(publication(leases[0], [0])).hungry


def test_a_worker_with_work_learns_that_first_chunks_wait(world: World, ann: AccountRecord) -> None:
    """This is so where the queue cannot choose, and first chunks have a queue of their own."""
    watched = WatchedWorld(world)
    watched.ports["queue"].instead["express_waits"] = lambda: True
    world.start(ann)
    first, second = (lease for lease in watched.retrieve())
    assert watched.publish(publication(first, [0])).waiting
    of_second = second.identity()
    request = ExtendLeases(worker_id="w", leases=[LeaseRef(**of_second)])
    assert watched.worker.extend_leases(request).waiting
