"""Task code that the store has is announced once, and again only after the store has lost it."""

from pathlib import Path
from typing import cast

from cloudpar._client.code_uploads import REMEMBERED, CodeUploads
from cloudpar._client.connection import Connection
from cloudpar._serialization.task_code import Code, serialize
from cloudpar_protocol.client_messages import PreparedUpload, PrepareUploads, PrepareUploadsReply
from cloudpar_protocol.limits import INLINE_CODE_BYTES
from support.up import Up


class Store:
    """Stands in for a connection to a master whose store has all code."""

    folder = None

    def __init__(self) -> None:
        self.announced = 0

    def call(self, _: object, request: PrepareUploads) -> PrepareUploadsReply:
        self.announced += 1
        return PrepareUploadsReply(uploads=[PreparedUpload(key=str(request.uploads[0].hash), link=None)])


def code(number: int) -> Code:
    """The code of a function that is too large for a request."""
    values = bytes([number % 256, number // 256]) * INLINE_CODE_BYTES
    return serialize(lambda: values)


def test_code_is_announced_once_until_it_is_forgotten() -> None:
    store, large = Store(), code(0)
    uploads = CodeUploads(cast("Connection", store))
    first = uploads.task_code(large)
    assert first == uploads.task_code(large)
    assert store.announced == 1
    uploads.forget(large.hash)
    assert uploads.task_code(large) == first
    assert store.announced == 2


def test_only_the_last_functions_are_remembered() -> None:
    store = Store()
    uploads = CodeUploads(cast("Connection", store))
    codes = [code(number) for number in range(REMEMBERED + 1)]
    for each in codes:
        uploads.task_code(each)
    assert store.announced == REMEMBERED + 1
    uploads.task_code(codes[1])
    assert store.announced == REMEMBERED + 1
    uploads.task_code(codes[0])
    assert store.announced == REMEMBERED + 2


def test_code_that_the_store_has_removed_is_uploaded_again(tmp_path: Path) -> None:
    values = bytes(2 * INLINE_CODE_BYTES)
    with Up(tmp_path / "data", workers=1) as up, up.pool() as pool:
        for _ in range(2):
            assert list(pool.map(lambda x: x + len(values), range(2))) == [len(values), len(values) + 1]
            (stored,) = (tmp_path / "data/blobs/code").rglob("*.blob")
            stored.unlink()
