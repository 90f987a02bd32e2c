"""The stored form of a head, which masters of other releases read and write too."""

from contextlib import suppress

import msgspec
from msgspec.structs import replace

from cloudpar_master.core.fold import fold
from cloudpar_master.core.head import Member, OpenRange, stored
from cloudpar_master.core.policy import Policy
from cloudpar_protocol.payloads import Unfit

FLAT = {
    "schema": 1, "package_id": "p", "account_id": "a", "name": "n", "version": 7, "state": "failed", "reason": "quota",
    "message": "m", "tasks": 90, "chunksize": 5, "codec": "msgpack", "cursor": 40, "open": [[0, 3, 2, True, 1]],
    "cancelled": [[4, 5]], "stopping": [[6, 7]], "draining": True, "done": 8, "errors": 2, "failed": [[8, 10]],
    "used_us": 11, "reserved_us": 12, "slice": 3, "slice_us": 13, "slice_at": 1.5, "wall": True, "mean_us": 2.5,
    "measured": 14, "execute_us": 15, "retrieve_us": 16, "publish_us": 17, "fleet": {5: [4, 3.5]}, "window": 18,
    "window_since": 6, "page": 4, "data_bytes": 19, "stored_bytes": 20, "started_at": 4.5, "now": 5.5, "ended_at": 6.5,
    "settle_at": 7.5, "settled": True, "acknowledged_at": 8.5, "deleted_at": 9.5,
}  # fmt: skip
"""Every field of release 0.2.0, each with a value that is not its default."""

LATER = {"python": "3.12", "set_aside": [{"host": "host", "lacks": "lacks"}], "stranded_at": 10.5, "anyhow": True}
"""The fields that 0.3.0 added."""

LATEST = {
    "code_bytes": 21, "uploaded_bytes": 22, "most_executors": 23, "heard_at": 11.5, "resend_at": 12.5, "depth": 1,
    "given_back": [24], "open": [[0, 3, 2, True, 1, True]], "pauses": True,
}  # fmt: skip
"""The fields that 0.4.0 added, also to open ranges."""


def test_a_head_of_release_0_2_0_is_read() -> None:
    head = stored.decode(msgspec.msgpack.encode(FLAT))
    assert (head.tasks.count, head.tasks.open) == (90, [OpenRange(0, 3, 2, sent=True, losses=1)])
    assert (head.quota.next_slice, head.quota.wanted_us, head.quota.ask_again_at, head.quota.exhausted) == (
        3, 13, 1.5, True,
    )  # fmt: skip
    assert (head.pace.fleet, head.pace.window) == ({5: Member(4, 3.5)}, 18)
    assert (head.life.state, head.life.deleted_at, head.life.run_anyway) == ("failed", 9.5, False)


def test_a_head_is_written_under_the_stored_names_of_earlier_releases() -> None:
    everything = FLAT | LATER | LATEST
    head = stored.decode(msgspec.msgpack.encode(everything))
    assert head.life.set_aside == [Unfit("host", "lacks")]
    written = msgspec.msgpack.decode(stored.encode(head), strict=False)
    del written[stored.CHECKSUM]
    assert written == everything
    assert stored.decode(stored.encode(head)) == head


def test_fields_of_a_later_release_survive_a_fold() -> None:
    """Otherwise a package would lose them as soon as an older master folds it during an update."""
    later = {"priority": 3, "places": [[1, 2], {"a": None}]}
    head = stored.decode(msgspec.msgpack.encode(FLAT | {"schema": 2} | later))
    assert head.schema == 2
    folded = fold(head, [], head.now + 1, Policy()).head
    for _ in range(2):
        folded = stored.decode(stored.encode(folded))
    written = msgspec.msgpack.decode(stored.encode(folded), strict=False)
    assert {name: written[name] for name in later} == later
    assert written["now"] == head.now + 1


def test_no_flipped_bit_of_a_stored_head_changes_what_is_read() -> None:
    """A head with another number of tasks, or of another account, would be worse than one that cannot be read.

    If the name of the checksum is damaged, it counts as a field of a later release.
    """
    head = stored.decode(msgspec.msgpack.encode(FLAT | LATER | LATEST))
    body = int.from_bytes(good := stored.encode(head))
    for bit in range(8 * len(good)):
        damaged = (body ^ 1 << bit).to_bytes(len(good))
        with suppress(ValueError):
            assert replace(stored.decode(damaged), later={}) == head, f"bit {bit}"


def test_what_a_head_of_an_earlier_release_does_not_say_is_zero_empty_or_unknown() -> None:
    least = {name: FLAT[name] for name in ("package_id", "account_id", "tasks", "window", "started_at", "now")}
    head = stored.decode(msgspec.msgpack.encode(least | {"open": [[0, 3, 2]]}))
    assert head.tasks.open == [OpenRange(0, 3, 2, sent=False, losses=0)]
    written = msgspec.msgpack.decode(stored.encode(head), strict=False)
    given = {*least, "open", stored.CHECKSUM, "schema", "codec", "state"}
    assert {name: value for name, value in written.items() if name not in given and value} == {}
    assert (written["schema"], written["codec"], written["state"]) == (1, "pickle", "running")
