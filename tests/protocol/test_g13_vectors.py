"""This version understands the messages of every release, and writes the bytes of its own vectors."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cloudpar_protocol import codec
from cloudpar_protocol.version import __version__
from cloudpar_protocol_tools import vectors
from cloudpar_protocol_tools.samples import message_types, samples

FILES = sorted(vectors.FOLDER.glob("v*.json"))
TODAY = vectors.FOLDER / f"v{__version__}.json"


def test_this_version_has_its_vectors() -> None:
    assert TODAY in FILES
    assert {vector.type for vector in vectors.read(TODAY).vectors} == set(message_types())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_released_message_is_understood(path: Path, reached: Callable[[str], None]) -> None:
    kinds, kept = message_types(), vectors.read(path).vectors
    for vector in kept:
        from_json = codec.decode(vector.json.encode(), kinds[vector.type], codec.JSON)
        assert codec.decode(bytes.fromhex(vector.msgpack), kinds[vector.type]) == from_json, vector.name
        assert _holds(codec.encode(from_json), bytes.fromhex(vector.msgpack)), vector.name
    reached(f"Python understands the {len(kept)} vectors of {path.stem}")


def test_this_versions_messages_are_its_vectors_to_the_byte(reached: Callable[[str], None]) -> None:
    kinds, kept = message_types(), vectors.read(TODAY).vectors
    for vector in kept:
        message = codec.decode(vector.json.encode(), kinds[vector.type], codec.JSON)
        assert codec.encode(message, codec.JSON).decode() == vector.json
        assert codec.encode(message).hex() == vector.msgpack
    reached(f"Python writes the {len(kept)} vectors of {TODAY.stem} to the byte")


def test_the_vectors_are_those_of_todays_messages() -> None:
    """If this fails: after a release, raise the version; before it, write the vectors again."""
    assert vectors.make() == vectors.read(TODAY)


def test_samples_reach_both_sides_of_each_optional_field() -> None:
    for kind in message_types().values():
        made = samples(kind)
        for field in msgspec.structs.fields(kind):
            if not field.required and field.name != "v":
                assert len({msgspec.json.encode(getattr(sample, field.name)) for sample in made}) > 1, (kind, field)


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = vectors.write(tmp_path)
    assert vectors.read(path) == vectors.make()
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        vectors.write(tmp_path)
    monkeypatch.setattr(vectors.write, "__defaults__", (tmp_path,))
    assert vectors.main() == 1
    assert path.read_bytes() == before


def _holds(today: bytes, then: bytes) -> bool:
    """Whether today's encoding contains everything that the older one did."""
    return _within(msgspec.msgpack.decode(today), msgspec.msgpack.decode(then))


def _within(today: Any, then: Any) -> bool:
    if isinstance(then, dict):
        return isinstance(today, dict) and all(key in today and _within(today[key], then[key]) for key in then)
    if isinstance(then, list):
        return isinstance(today, list) and len(today) >= len(then) and all(map(_within, today, then))
    return type(today) is type(then) and bool(today == then)
