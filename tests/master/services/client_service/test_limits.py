"""What an account may have running: refused with a time to come again, or for good if it never fits."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from cloudpar_protocol.errors import RateLimited, TooLarge
from cloudpar_protocol.payloads import InlineData
from master.services.world import World, master, start_tasks

POLICY = Policy(running_packages=3, running_tasks=100, running_bytes=1_000)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, POLICY) as world:
        yield world


def data(*sizes: int) -> InlineData:
    return InlineData([bytes(size) for size in sizes])


def test_packages_wait_for_room(world: World, ann: AccountRecord, bob: AccountRecord) -> None:
    first, *_ = [world.start(ann, 1) for _ in range(3)]
    with pytest.raises(RateLimited, match=r"'ann' has 3 packages running, of 3 .*ask the operator") as refused:
        world.start(ann, 1)
    assert refused.value.retry_after_s
    world.start(bob, 1)
    world.cancel(ann, first)
    world.start(ann, 1)


def test_tasks_wait_for_room(world: World, ann: AccountRecord) -> None:
    first = world.start(ann, 60)
    with pytest.raises(RateLimited, match=r"'ann' has 60 tasks running, of 100"):
        world.start(ann, 41)
    world.start(ann, 40)
    world.work_all()
    assert world.head(first).ended
    world.start(ann, 41)


def test_bytes_of_task_data_wait_for_room(world: World, ann: AccountRecord) -> None:
    world.start(ann, 2, data=data(300, 300))
    with pytest.raises(RateLimited, match=r"'ann' has 600 bytes of task data running, of 1,000"):
        world.start(ann, 1, data=data(401))
    world.start(ann, 1, data=data(400))


def test_what_never_fits_is_no_reason_to_wait(world: World, ann: AccountRecord) -> None:
    with pytest.raises(TooLarge, match=r"101 tasks are over the 100 that account 'ann' .*buffersize=.*operator"):
        world.start(ann, 101)
    with pytest.raises(TooLarge, match=r"1,001 bytes .* over the 1,000 that account 'ann' .*storage.*operator"):
        world.start(ann, 1, data=data(1_001))
    upload = PrepareUploads(uploads=[Upload(kind="data", size=1_001, crc32=0)])
    with pytest.raises(TooLarge, match=r"1,001 bytes"):
        world.client.prepare_uploads(ann, upload)


def test_a_start_that_was_done_is_answered_again(world: World, ann: AccountRecord) -> None:
    """Its first answer was lost, and it is itself what takes the room."""
    request = start_tasks("key", 100)
    first = world.client.start_tasks(ann, request)
    assert world.client.start_tasks(ann, request) == first
