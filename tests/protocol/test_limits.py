"""The codec enforces every limit that a message states, on both sides of the edge."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from cloudpar_protocol import codec
from cloudpar_protocol.errors import BadRequest
from cloudpar_protocol.limits import BULK_ITEMS, HOLD_S, PUBLICATION_TASKS
from cloudpar_protocol.routes import (
    ACKNOWLEDGE,
    AWAIT_TASKS,
    CANCEL_TASKS,
    CREATE_ACCOUNT,
    LIST_PACKAGES,
    PREPARE_UPLOADS,
    PUBLISH_RESULTS,
    RETRIEVE_TASKS,
    ROUTES,
    START_TASKS,
    Route,
)
from cloudpar_protocol_tools.samples import samples

A_HASH = "a" * 64
AWAITED = [{"package_id": "p"}]
UPLOAD: dict[str, Any] = {"kind": "data", "size": 1, "hash": A_HASH, "crc32": 0}


@pytest.mark.parametrize(
    ("route", "good", "bad"),
    [
        (START_TASKS, {"n": 1}, {"n": 0}),
        (START_TASKS, {"chunksize": 1}, {"chunksize": 0}),
        (START_TASKS, {"name": "x" * 200}, {"name": "x" * 201}),
        (START_TASKS, {"idempotency_key": "x"}, {"idempotency_key": ""}),
        (START_TASKS, {"idempotency_key": "x" * 200}, {"idempotency_key": "x" * 201}),
        (START_TASKS, {"task_timeout_s": 0.001}, {"task_timeout_s": 0}),
        (START_TASKS, {"code": {"hash": A_HASH}}, {"code": {"hash": A_HASH.upper()}}),
        (START_TASKS, {"code": {"hash": A_HASH}}, {"code": {"hash": A_HASH + "\n"}}),
        (START_TASKS, {"call": "args_kwargs"}, {"call": "shell"}),
        (START_TASKS, {"codec": "msgpack"}, {"codec": "marshal"}),
        *(
            (START_TASKS, {"code": {"hash": A_HASH, "reference": good}}, {"code": {"hash": A_HASH, "reference": bad}})
            for good, bad in (
                ("a:b", "a"),
                ("_a.b2.C:d.e", "2a:b"),
                ("a:b", "a:b\n"),
                ("a:b", ":b"),
                ("a:b", "a.:b"),
                ("a:b", "a:b()"),
                ("a:" + "b" * 198, "a:" + "b" * 199),
            )
        ),
        (START_TASKS, {"data": {"type": "inline", "items": []}}, {"data": {"type": "file", "items": []}}),
        (AWAIT_TASKS, {"packages": AWAITED}, {"packages": []}),
        (AWAIT_TASKS, {"packages": AWAITED * BULK_ITEMS}, {"packages": AWAITED * (BULK_ITEMS + 1)}),
        (AWAIT_TASKS, {"hold_s": HOLD_S}, {"hold_s": HOLD_S + 0.1}),
        (AWAIT_TASKS, {"hold_s": 0}, {"hold_s": -0.1}),
        (CANCEL_TASKS, {"ranges": [[0, 10_000_000]]}, {"ranges": [[0, 10_000_001]]}),
        (CANCEL_TASKS, {"ranges": [[0, 1]]}, {"ranges": [[-1, 1]]}),
        (CANCEL_TASKS, {"ranges": [[0, 1]]}, {"ranges": [[0, 1, 2]]}),
        (CANCEL_TASKS, {"ranges": [[0, 1]] * 100}, {"ranges": [[0, 1]] * 101}),
        (ACKNOWLEDGE, {"package_ids": ["x"] * BULK_ITEMS}, {"package_ids": ["x"] * (BULK_ITEMS + 1)}),
        (LIST_PACKAGES, {"limit": 1000}, {"limit": 1001}),
        (PREPARE_UPLOADS, {"uploads": [UPLOAD] * BULK_ITEMS}, {"uploads": [UPLOAD] * (BULK_ITEMS + 1)}),
        (PREPARE_UPLOADS, {"uploads": [UPLOAD]}, {"uploads": [UPLOAD | {"size": -1}]}),
        (RETRIEVE_TASKS, {"chunks": BULK_ITEMS}, {"chunks": BULK_ITEMS + 1}),
        (RETRIEVE_TASKS, {"executors": 1}, {"executors": 0}),
        (CREATE_ACCOUNT, {"name": "x" * 100}, {"name": "x" * 101}),
        (CREATE_ACCOUNT, {"name": "x"}, {"name": ""}),
        (CREATE_ACCOUNT, {"quota_us": 0}, {"quota_us": -1}),
    ],
    ids=lambda value: value.name if isinstance(value, Route) else str(value)[:60],
)
def test_a_value_at_the_limit_is_accepted_and_one_beyond_is_refused(
    route: Route[Any, Any], good: dict[str, Any], bad: dict[str, Any]
) -> None:
    body = _plain(samples(route.request)[0])
    codec.decode(codec.encode(body | good), route.request)
    with pytest.raises(BadRequest, match=next(iter(bad))):
        codec.decode(codec.encode(body | bad), route.request)


def test_a_publication_has_a_largest_number_of_tasks() -> None:
    body = _plain(samples(PUBLISH_RESULTS.request)[0])
    publication = body["publications"][0]
    publication["results"] = [[0, "ok", 1]] * PUBLICATION_TASKS
    codec.decode(codec.encode(body), PUBLISH_RESULTS.request)
    publication["results"].append([0, "ok", 1])
    with pytest.raises(BadRequest, match="results"):
        codec.decode(codec.encode(body), PUBLISH_RESULTS.request)


def test_every_field_of_a_request_is_bounded_or_opaque() -> None:
    """A new field of a request must state its limit, or be listed here with the reason.

    Only the limit of the body bounds the listed texts and bytes.
    """
    assert {path for route in ROUTES for path in _unbounded(route.request.__name__, route.request)} == {
        "InlineData.items[]",  # a payload
        "InlineData.seals",  # 16 bytes for each of them, which the client service compares
        "TaskCode.inline",  # a payload
        "TaskResult.data",  # a payload
        "TaskResult.message",  # cut by the worker, and again by the worker service
        "TaskResult.traceback",
        "TaskResult.stdout",
        "TaskResult.stderr",
        "Publication.message",
    }


def _unbounded(path: str, kind: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(kind):
        if field.name != "v":
            yield from _open(f"{path}.{field.name}", inspect.type_info(field.type))


def _open(path: str, info: inspect.Type) -> Iterator[str]:
    match info:
        case inspect.StructType():
            yield from _unbounded(info.cls.__name__, info.cls)
        case inspect.UnionType(types=parts) | inspect.TupleType(item_types=parts):
            for inner in parts:
                yield from _open(path, inner)
        case inspect.ListType():
            yield from [path] if info.max_length is None else []
            yield from _open(f"{path}[]", info.item_type)
        case inspect.IntType() | inspect.FloatType():
            has_least = info.ge is not None or info.gt is not None
            yield from [] if has_least and (info.le is not None or info.lt is not None) else [path]
        case inspect.StrType() | inspect.BytesType() | inspect.DictType():
            yield from [path] if info.max_length is None else []


def _plain(message: msgspec.Struct) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.msgpack.decode(codec.encode(message))
    return plain
