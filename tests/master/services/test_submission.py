from typing import Any

import pytest

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol.errors import BadRequest, RequestError, TooLarge
from cloudpar_protocol.limits import INLINE_CODE_BYTES, INLINE_DATA_BYTES, INLINE_ITEM_BYTES, PACKAGE_TASKS
from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, TaskCode
from support.world import World

HASH = "0" * 64
EMPTY = INLINE_DATA_BYTES // INLINE_ITEM_BYTES + 1
"""The number of empty items that is one more than a request may contain."""

WRONG: list[tuple[dict[str, Any], type[RequestError], str]] = [
    ({"tasks": PACKAGE_TASKS + 1}, TooLarge, "pass `buffersize=` to map, or give each task more to do"),
    ({"code": TaskCode(HASH)}, BadRequest, "exactly one of `inline`, `blob` and `reference`"),
    ({"code": TaskCode(HASH, inline=b"", blob=BlobRef("code/x", 1))}, BadRequest, "exactly one of"),
    ({"code": TaskCode(HASH, inline=b"x" * (INLINE_CODE_BYTES + 1))}, TooLarge, r"upload it \(prepare_uploads\)"),
    ({"code": TaskCode(HASH, reference="a:b")}, BadRequest, "give both or neither"),
    ({"codec": "msgpack"}, BadRequest, "give both or neither"),
    ({"data": InlineData([b""] * 9)}, BadRequest, "n is 10, but there are 9 items of task data"),
    ({"data": InlineData([b"x" * INLINE_DATA_BYTES] * 10)}, TooLarge, r"upload it \(prepare_uploads\)"),
    ({"tasks": EMPTY, "data": InlineData([b""] * EMPTY)}, TooLarge, r"upload it \(prepare_uploads\)"),
    ({"data": "blob of 87 bytes"}, BadRequest, "a data blob of 87 bytes cannot hold the table of 10 tasks"),
]


@pytest.mark.parametrize(("changes", "error", "text"), WRONG)
def test_a_contradictory_start_is_refused_and_queues_nothing(
    world: World, ann: AccountRecord, changes: dict[str, Any], error: type[RequestError], text: str
) -> None:
    if isinstance(changes.get("data"), str):
        changes = {"data": BlobData(BlobRef(f"data/{ann.account_id}/d", 87))}
    with pytest.raises(error, match=text):
        world.start(ann, **changes)
    assert world.backend.queue.waiting() == 0
    assert list(world.backend.packages.of_account(None, 1)) == []


RIGHT: list[dict[str, Any]] = [
    {"tasks": PACKAGE_TASKS},
    {"code": TaskCode(HASH, inline=b"x" * INLINE_CODE_BYTES)},
    {"code": TaskCode(HASH, reference="package.module:function"), "codec": "msgpack"},
    {"data": InlineData([b""] * 9 + [b"x" * (INLINE_DATA_BYTES - 10 * INLINE_ITEM_BYTES)])},
    {"tasks": EMPTY - 1, "data": InlineData([b""] * (EMPTY - 1))},
]


@pytest.mark.parametrize("changes", RIGHT)
def test_a_start_just_within_the_limits_is_taken(world: World, ann: AccountRecord, changes: dict[str, Any]) -> None:
    assert world.head(world.start(ann, **changes)).life.state == "running"
