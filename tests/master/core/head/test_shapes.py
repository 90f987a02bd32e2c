"""What is stored of a package: each change of it must be safe beside masters of earlier releases.

During an update masters of two releases fold the same packages. The older one keeps fields of the head's groups that it
does not know. But it drops what it does not know inside a range, a member or another nested value, it cannot read a
value of another type, and it fails a package at an event that it does not know.
"""

from typing import Any, get_args

from msgspec import inspect

from cloudpar_master.core.events import Event
from cloudpar_master.core.head import SCHEMA, Life, Pace, Quota, Tasks
from cloudpar_master.core.head.package import Identity

ADVICE = """
What is stored of packages has changed. If you have only added a field with a default to a group of the head or to an
event, and a fold of an older release may leave this field as it is, write the new shape into this test. Otherwise
increment SCHEMA, and write all shapes under the new number. A new event needs a release before it that understands it.
"""

HEADS = {
    1: {
        "schema": "int",
        "package_id": "str",
        "account_id": "str",
        "name": "str",
        "codec": "one of msgpack, pickle",
        "python": "str",
        "version": "int",
        "page": "int",
        "data_bytes": "int",
        "code_bytes": "int",
        "uploaded_bytes": "int",
        "depth": "int",
        "started_at": "float",
        "now": "float",
        "tasks": "int",
        "chunksize": "int | none",
        "cursor": "int",
        "open": "list of [start: int, end: int, generation: int, sent: bool, losses: int, express: bool]",
        "cancelled": "list of (int, int)",
        "stopping": "list of (int, int)",
        "draining": "bool",
        "done": "int",
        "errors": "int",
        "failed": "list of (int, int)",
        "used_us": "int",
        "reserved_us": "int",
        "slice": "int",
        "slice_us": "int",
        "slice_at": "float",
        "wall": "bool",
        "mean_us": "float",
        "measured": "int",
        "execute_us": "int",
        "retrieve_us": "int",
        "publish_us": "int",
        "fleet": "int to [executors: int, seen_at: float]",
        "window": "int",
        "window_since": "int",
        "pauses": "bool",
        "most_executors": "int",
        "heard_at": "float",
        "resend_at": "float",
        "state": "one of cancelled, completed, expired, failed, running",
        "reason": "str | none",
        "message": "str | none",
        "ended_at": "float | none",
        "settle_at": "float | none",
        "settled": "bool",
        "acknowledged_at": "float | none",
        "deleted_at": "float | none",
        "stored_bytes": "int",
        "set_aside": "list of {host: str, lacks: str}",
        "stranded_at": "float | none",
        "anyhow": "bool",
        "given_back": "list of int",
    }
}
"""By schema number: the stored fields of a head, and the type of each."""

EVENTS = {
    "published": "worker_id executors generation results wait_us retrieve_us publish_us refused message closed",
    "gave_back": "generation ranges losses unfit used_us closed number",
    "lost": "start end generation receives",
    "cancel_asked": "ranges only_queued reason message",
    "cleared": "generation ranges",
    "acknowledged": "",
    "executors_idle": "executors",
    "quota_granted": "slice granted_us exhausted packages",
    "sent": "chunks",
    "settled": "charged_us",
    "deleted": "",
    "broken": "message results",
    "stranded": "message",
    "placed": "",
}
"""By stored name: the fields of each event."""


def shape(kind: inspect.Type) -> str:
    """Describe a type, with all types in it."""
    match kind:
        case inspect.StructType(fields=fields, array_like=True):
            text = f"[{', '.join(f'{each.name}: {shape(each.type)}' for each in fields)}]"
        case inspect.StructType(fields=fields):
            text = f"{{{', '.join(f'{each.encode_name}: {shape(each.type)}' for each in fields)}}}"
        case inspect.UnionType(types=several):
            text = " | ".join(map(shape, several))
        case inspect.LiteralType(values=values):
            text = f"one of {', '.join(map(str, values))}"
        case inspect.ListType(item_type=item):
            text = f"list of {shape(item)}"
        case inspect.TupleType(item_types=items):
            text = f"({', '.join(map(shape, items))})"
        case inspect.DictType(key_type=key, value_type=value):
            text = f"{shape(key)} to {shape(value)}"
        case _:
            text = type(kind).__name__.removesuffix("Type").lower()
    return text


def of_struct(kind: Any) -> inspect.StructType:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info


def test_what_a_head_stores_changes_only_in_ways_that_earlier_masters_can_handle() -> None:
    fields = [each for group in (Identity, Tasks, Quota, Pace, Life) for each in of_struct(group).fields]
    assert {each.encode_name: shape(each.type) for each in fields} == HEADS[SCHEMA], ADVICE
    assert len(fields) == len(HEADS[SCHEMA]), "no two groups use the same stored name"


def test_events_change_only_in_ways_that_earlier_masters_can_handle() -> None:
    events = map(of_struct, get_args(Event))
    assert {str(each.tag): " ".join(field.encode_name for field in each.fields) for each in events} == EVENTS, ADVICE
