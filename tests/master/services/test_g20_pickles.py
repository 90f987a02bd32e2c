"""The master never unpickles: pickles in every field of every message do nothing, in requests and in storage."""

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cloudpar_master.ports import AccountRecord
from cloudpar_protocol import codec
from cloudpar_protocol.errors import RequestError
from cloudpar_protocol.payloads import InlineData, TaskCode
from cloudpar_protocol.routes import ROUTES
from cloudpar_protocol_tools.samples import samples
from support.world import World, publication
from support.writing import Writing


@pytest.fixture
def evil(tmp_path: Path) -> bytes:
    return pickle.dumps(Writing(tmp_path / "marker"))


@pytest.fixture
def unread(tmp_path: Path, evil: bytes, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Check that nothing unpickles during the test, and that the pickle would have had an effect."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the master unpickles")

    for name in ("loads", "load", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    yield
    assert not (tmp_path / "marker").exists()
    monkeypatch.undo()
    pickle.loads(evil)
    assert (tmp_path / "marker").exists()


def stuffed(value: Any, evil: bytes) -> Any:
    """Return a message with the pickle in each place for bytes."""
    if isinstance(value, bytes):
        return evil if len(value) != 16 else evil[:16]
    if isinstance(value, msgspec.Struct):
        changed = {name: stuffed(getattr(value, name), evil) for name in value.__struct_fields__}
        return replace(value, **changed)
    if isinstance(value, list | tuple):
        return type(value)(stuffed(each, evil) for each in value)
    if isinstance(value, dict):
        return {name: stuffed(each, evil) for name, each in value.items()}
    return value


def test_g20_pickles_in_every_message_are_not_unpickled(
    world: World, ann: AccountRecord, evil: bytes, unread: None, reached: Callable[[str], None]
) -> None:
    sent = 0
    for route in ROUTES:
        bodies = [(codec.encode(stuffed(sample, evil), media), media) for sample in samples(route.request)
                  for media in (codec.MSGPACK, codec.JSON)]  # fmt: skip
        for body, media in [*bodies, (evil, codec.MSGPACK), (evil, codec.JSON)]:
            for token in ("ann", "worker", "admin", evil.decode("latin-1")):
                sent += 1
                try:
                    world.dispatcher.perform(world.dispatcher.admit(route.name, token, body, media))
                except RequestError as error:
                    assert error.status < 500, error  # noqa: PT017 - every error of the loop is looked at
    world.timer.tick()
    reached(f"{sent} requests with pickles, on all {len(ROUTES)} routes: the master unpickled none")


def test_g20_pickles_in_a_whole_package_are_not_unpickled(
    world: World, ann: AccountRecord, evil: bytes, unread: None
) -> None:
    package_id = world.start(ann, tasks=10, code=TaskCode("0" * 64, evil), data=InlineData([evil] * 10))
    leases = world.retrieve()
    assert {lease.code.inline for lease in leases} == {evil}
    for lease in leases:
        world.publish(publication(lease, data=evil, message=evil.decode("latin-1")))
    status = world.status(ann, package_id)
    assert [result.data for result in status.results] == [evil] * 10
    world.acknowledge(ann, package_id)
    world.settle()
    world.clock.move(100 * 86400)
    world.timer.tick()
