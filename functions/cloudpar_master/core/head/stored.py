"""How a head is stored: the fields of all groups in one flat map, as in release 0.1.0.

During an upgrade masters of two releases run beside each other, and each reads what the other wrote. Therefore neither
a stored name nor its meaning ever changes. A field that is renamed in a group keeps its stored name
(`field(name=...)`), and no two groups use the same stored name.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, fields

from .life import Life
from .pace import Pace
from .package import Head, Identity
from .quota import Quota
from .tasks import Tasks

_identity = msgspec.msgpack.Decoder(Identity)
_tasks = msgspec.msgpack.Decoder(Tasks)
_quota = msgspec.msgpack.Decoder(Quota)
_pace = msgspec.msgpack.Decoder(Pace)
_life = msgspec.msgpack.Decoder(Life)
_encoder = msgspec.msgpack.Encoder()
_stored_names: dict[type[Struct], list[tuple[str, str]]] = {
    group: [(each.name, each.encode_name) for each in fields(group)] for group in (Identity, Tasks, Quota, Pace, Life)
}


def encode(head: Head) -> bytes:
    """Encode a head as it is stored: the fields of all groups in one map."""
    groups: dict[type[Struct], Struct] = {
        Identity: head, Tasks: head.tasks, Quota: head.quota, Pace: head.pace, Life: head.life,
    }  # fmt: skip
    flat = {stored: getattr(record, name) for group, record in groups.items() for name, stored in _stored_names[group]}
    return _encoder.encode(flat)


def decode(body: bytes) -> Head:
    """Decode a stored head. Each group takes its own fields out of the map, and ignores the others."""
    return Head(
        **asdict(_identity.decode(body)),
        tasks=_tasks.decode(body),
        quota=_quota.decode(body),
        pace=_pace.decode(body),
        life=_life.decode(body),
    )
