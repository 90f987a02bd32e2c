"""Guarantee 17, what an account may have running: a start is refused for some time, or for good if it never fits."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import AccountRecord
from cloudpar_master.services import bodies
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from cloudpar_protocol.errors import RateLimited, TooLarge
from cloudpar_protocol.limits import INLINE_ITEM_BYTES
from cloudpar_protocol.payloads import InlineData
from support.world import World, master, start_tasks

POLICY = Policy(running_packages=3, running_tasks=100, running_bytes=1_000)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with master(tmp_path, POLICY) as world:
        yield world


def says_when_to_try_again(refusal: RateLimited) -> bool:
    answer = bodies.refusal({}, refusal)
    return answer.status == 429 and int(answer.headers["Retry-After"]) >= (refusal.retry_after_s or 0.0) > 0.0


def data(*sizes: int) -> InlineData:
    """Make items whose sizes in the limits are these numbers of bytes."""
    return InlineData([bytes(size - INLINE_ITEM_BYTES) for size in sizes])


def test_g17_a_package_over_the_limit_of_packages_waits(
    world: World, ann: AccountRecord, bob: AccountRecord, reached: Callable[[str], None]
) -> None:
    first, *_ = [world.start(ann, 1) for _ in range(3)]
    with pytest.raises(RateLimited, match=r"'ann' has 3 packages running, of 3 .*ask the operator") as refused:
        world.start(ann, 1)
    assert says_when_to_try_again(refused.value)
    world.start(bob, 1)
    world.cancel(ann, first)
    world.start(ann, 1)
    reached(f"a package over the {POLICY.running_packages} that may run: 429 with Retry-After")


def test_g17_a_package_over_the_limit_of_tasks_waits(
    world: World, ann: AccountRecord, reached: Callable[[str], None]
) -> None:
    first = world.start(ann, 60)
    with pytest.raises(RateLimited, match=r"'ann' has 60 tasks running, of 100") as refused:
        world.start(ann, 41)
    assert says_when_to_try_again(refused.value)
    world.start(ann, 40)
    world.work_all()
    assert world.head(first).life.ended
    world.start(ann, 41)
    reached(f"tasks over the {POLICY.running_tasks} that may run: 429 with Retry-After")


def test_g17_a_package_over_the_limit_of_task_data_waits(
    world: World, ann: AccountRecord, reached: Callable[[str], None]
) -> None:
    world.start(ann, 2, data=data(300, 300))
    with pytest.raises(RateLimited, match=r"'ann' has 600 bytes of task data running, of 1,000") as refused:
        world.start(ann, 1, data=data(401))
    assert says_when_to_try_again(refused.value)
    world.start(ann, 1, data=data(400))
    reached(f"bytes over the {POLICY.running_bytes:,} that may run: 429 with Retry-After")


def test_g17_empty_items_count_for_the_limit_of_task_data(
    world: World, ann: AccountRecord, reached: Callable[[str], None]
) -> None:
    world.start(ann, 1, data=data(600))
    with pytest.raises(RateLimited, match=r"'ann' has 600 bytes of task data running, of 1,000"):
        world.start(ann, 90, data=InlineData([b""] * 90))
    world.start(ann, 80, data=InlineData([b""] * 80))
    reached(f"an empty item counts {INLINE_ITEM_BYTES} bytes")


def test_a_start_over_a_limit_that_it_can_never_meet_is_too_large(world: World, ann: AccountRecord) -> None:
    with pytest.raises(TooLarge, match=r"101 tasks are over the 100 that account 'ann' .*buffersize=.*operator"):
        world.start(ann, 101)
    with pytest.raises(TooLarge, match=r"1,001 bytes .* over the 1,000 that account 'ann' .*storage.*operator"):
        world.start(ann, 1, data=data(1_001))
    upload = PrepareUploads(uploads=[Upload(kind="data", size=1_001, crc32=0)])
    with pytest.raises(TooLarge, match=r"1,001 bytes"):
        world.client.prepare_uploads(ann, upload)


def test_a_repeated_start_is_answered_although_the_account_is_at_its_limit(world: World, ann: AccountRecord) -> None:
    """The first answer was lost, and the package itself is what reaches the limit."""
    request = start_tasks("key", 100)
    first = world.client.start_tasks(ann, request)
    assert world.client.start_tasks(ann, request) == first
