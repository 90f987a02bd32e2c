"""A real agent verifies leases before an executor sees them, and seals the results of its executors."""

import hashlib
import pickle
import struct
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cloudpar_protocol.payloads import BlobData, BlobRef, InlineData, Link, RangeData, TaskCode
from cloudpar_protocol.seals import Seals, package_id
from cloudpar_protocol.worker_messages import Lease
from cloudpar_worker.shell.executor_process import ExecutorProcess
from cloudpar_worker.shell.verifying import SealBroken, verify
from support.leases import code_from, code_of, inline, lease_of
from support.running_agent import RunningAgent
from support.writing import Writing
from worker.scripted_master import ScriptedMaster

KEY = bytes(range(32))
MINE, OTHER = (package_id("a", name, sealed=True) for name in ("mine", "other"))
StartAgent = Callable[..., RunningAgent]


def as_it_is(value: Any) -> Any:
    return value


def length(value: str) -> int:
    return len(value)


def sealed(lease: Lease, key: bytes = KEY) -> Lease:
    """A lease of a sealed package, as the master hands it out."""
    seals = Seals(key, lease.package_id)
    if isinstance(lease.data, InlineData):
        made = b"".join(seals.data(index, item) for index, item in enumerate(lease.data.items, lease.start))
        lease = replace(lease, data=InlineData(lease.data.items, made))
    of_code = {"call": lease.call, "codec": lease.codec, "python": lease.python, "tasks": lease.tasks}
    return replace(lease, seal=seals.code(lease.code, lease.data, **of_code), seal_key=KEY)  # type: ignore[arg-type]


def sealed_blob(name: str, items: list[bytes]) -> bytes:
    """Task data as a blob: items, seals, table."""
    seals = Seals(KEY, name)
    table = struct.pack(f"<{len(items) + 1}Q", 0, *accumulate(map(len, items)))
    return b"".join([*items, *(seals.data(index, item) for index, item in enumerate(items)), table])


def with_inline(**changes: Any) -> Lease:
    return sealed(lease_of(as_it_is, 3, package_id=MINE, data=inline(["a", "b", "c"]), **changes))


def changed(marker: Path) -> dict[str, Lease]:
    """Changes to a lease by an attacker who does not have the key."""
    evil = pickle.dumps(Writing(marker))
    good = with_inline()
    assert isinstance(good.data, InlineData)
    items, seals, code = good.data.items, good.data.seals, code_from(evil)
    theirs = sealed(replace(good, package_id=OTHER, data=InlineData([evil, *items[1:]])))
    assert isinstance(theirs.data, InlineData)
    return {
        "the code": replace(good, code=code),
        "the code under its old hash": replace(good, code=replace(good.code, inline=evil)),
        "the code of another package": replace(good, code=code, seal=sealed(replace(theirs, code=code)).seal),
        "how it is called": replace(good, call="args"),
        "a reference for the code": replace(good, code=TaskCode(good.code.hash, reference="os:system")),
        "the range": replace(sealed(lease_of(as_it_is, 3, package_id=MINE)), data=RangeData(1, 1)),
        "an item": replace(good, data=InlineData([items[0], evil, items[2]], seals)),
        "two items that changed places": replace(good, data=InlineData([items[1], items[0], items[2]], seals)),
        "and their seals too": replace(
            good, data=InlineData([items[1], items[0], items[2]], seals[16:32] + seals[:16] + seals[32:])
        ),
        "an item of another package": replace(good, data=theirs.data),
        "items without seals": replace(good, data=InlineData(items)),
        "no seal": replace(good, seal=None),
        "no seals at all": replace(good, seal=None, seal_key=None, data=InlineData([evil] * 3)),
        "no key": replace(good, seal_key=None),
        "another account's key": sealed(lease_of(as_it_is, 3, package_id=MINE, data=InlineData([evil] * 3)), bytes(32)),
    }


@pytest.mark.parametrize("what", changed(Path()))
def test_g20_a_changed_lease_is_noticed(what: str, tmp_path: Path) -> None:
    verify(with_inline())
    with pytest.raises(SealBroken, match=r"seal|hash"):
        verify(changed(tmp_path / "marker")[what])


def test_g20_an_agent_refuses_a_changed_lease(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path, reached: Callable[[str], None]
) -> None:
    start_agent()
    marker = tmp_path / "marker"
    leases = changed(marker)
    for lease in leases.values():
        master.hand_out(lease)
        master.wait(partial(master.closed, lease.lease_id))
    refused = {made.lease_id: made for made in master.publications}
    for what, lease in leases.items():
        made = refused[lease.lease_id]
        assert (made.refused, made.results) == ("seal", []), what
        assert made.message
        assert "it was not run" in made.message
    good = with_inline()
    master.hand_out(good)
    master.wait(partial(master.closed, good.lease_id))
    seals = Seals(KEY, MINE)
    results = master.results()
    assert [pickle.loads(results[index].data or b"") for index in range(3)] == ["a", "b", "c"]
    assert all(map(seals.is_result, results.values()))
    assert not marker.exists()
    reached(f"{len(leases)} kinds of changed code and data: refused by the agent before an executor saw them")


def test_g20_blobs_are_verified_before_they_run(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start_agent()
    marker = tmp_path / "marker"
    items = [pickle.dumps(text * 1_000) for text in "abcd"]
    evil = pickle.dumps(Writing(marker))
    body = sealed_blob(MINE, items)
    two, start = len(items[0]), sum(map(len, items))
    bodies = {
        "good": body,
        "item": body[:two] + evil + body[two + len(evil) :],
        "swapped": sealed_blob(MINE, [items[0], items[2], items[1], items[3]])[:start] + body[start:],
        "foreign": sealed_blob(OTHER, [items[0], evil.ljust(len(items[1])), *items[2:]]),
        "bare": b"".join(items) + body[-8 * 5 :],
        "table": body[: -8 * 5] + body[-8 * 5 :][::-1],
        "beyond": body[:-8] + struct.pack("<Q", len(body) + 1),
    }
    master.blobs = dict(bodies)
    for name, whole in bodies.items():
        lease = lease_of(
            length, 3, start=1, tasks=4, package_id=MINE, data=BlobData(BlobRef(name, len(whole))),
            data_link=Link("GET", f"{master.endpoint}/blob/{name}"),
        )  # fmt: skip
        lease = sealed(lease)
        master.hand_out(lease)
        master.wait(partial(master.closed, lease.lease_id))
        made = [each for each in master.publications if each.lease_id == lease.lease_id]
        if name == "good":
            assert [pickle.loads(result.data or b"") for each in made for result in each.results] == [1_000] * 3
        else:
            assert (made[-1].refused, [each.results for each in made]) == ("seal", [[]]), name
    assert not marker.exists()


def test_g20_code_in_a_blob_is_verified_before_it_runs(
    master: ScriptedMaster, start_agent: StartAgent, tmp_path: Path
) -> None:
    start_agent()
    marker = tmp_path / "marker"
    master.blobs["code"] = evil = pickle.dumps(Writing(marker))
    code = TaskCode(hashlib.sha256(b"what was sealed").hexdigest(), blob=BlobRef("code", len(evil)))
    lease = lease_of(code, 3, package_id=MINE, code_link=Link("GET", f"{master.endpoint}/blob/code"))
    master.hand_out(sealed(lease))
    master.wait(partial(master.closed, lease.lease_id))
    assert [(made.refused, made.results) for made in master.publications] == [("seal", [])]
    assert not marker.exists()


def test_large_results_are_sealed_as_a_whole(master: ScriptedMaster, start_agent: StartAgent) -> None:
    start_agent()
    master.hand_out(sealed(lease_of(lambda number: bytes(100_000 + number), 2, package_id=MINE)))
    for result in master.wait_for_results(2).values():
        assert result.blob is not None
        whole = master.blobs[result.blob.key][result.blob.offset : result.blob.offset + result.blob.size]
        assert Seals(KEY, MINE).is_result(replace(result, data=whole))


def test_a_package_without_seals_runs_as_before(master: ScriptedMaster, start_agent: StartAgent) -> None:
    start_agent()
    master.hand_out(lease_of(lambda number: number, 2, package_id=package_id("a", "old", sealed=False)))
    assert [result.seal for result in master.wait_for_results(2).values()] == [None, None]


def test_g20_no_frame_for_an_executor_holds_the_key() -> None:
    process = ExecutorProcess(1, "3.11", None, 10**6)
    process.handed_over()
    sent: list[bytes] = []
    process.flush = lambda: sent.append(b"".join(frame.rest for frame in process._unsent))  # type: ignore[method-assign]
    lease = with_inline()
    assert isinstance(lease.data, InlineData)
    assert lease.code.inline is not None
    process.send(lease, 0, 3, lease.code.inline, lease.data.items)
    process.close()
    assert any(lease.data.items[0] in frame for frame in sent)
    assert not any(secret in frame for frame in sent for secret in (KEY, lease.data.seals[:16], lease.seal or b"?"))


def test_unsealed_code_is_not_called_in_place_of_sealed_code() -> None:
    """An executor finds functions by their hash, and unsealed code may come with a wrong one."""
    process = ExecutorProcess(1, "3.11", None, 10**6)
    process.handed_over()
    sent: list[bytes] = []
    process.flush = lambda: sent.append(b"".join(frame.rest for frame in process._unsent))  # type: ignore[method-assign]
    good = sealed(lease_of(code_of(as_it_is), 1, package_id=MINE))
    claimed = lease_of(TaskCode(good.code.hash, b"claims to be that"), 1)
    for lease in (claimed, good):
        assert lease.code.inline is not None
        process.send(lease, 0, 1, lease.code.inline, None)
    process.close()
    assert good.code.inline is not None
    assert good.code.hash == hashlib.sha256(good.code.inline).hexdigest()
    assert good.code.inline in sent[-1]
