"""Many workers retrieve the same chunk at the same moment: one of them gets it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest

from aws.differences import SOUND
from cloudpar_master.core.policy import Policy
from master.races import LONGEST_S, patiently, race
from support.clock import SetClock
from support.scale import Scale
from support.stores import Factory, Stores
from support.world import master, world_on

CALLERS = 64
AT_ONCE = 5
"""How many chunks wait when all callers retrieve one chunk each."""

POLICY = Policy(lease_s=3600.0, slice_us=1_000)
PLENTY_US = 10**15


@pytest.mark.parametrize("factory", SOUND, ids=lambda factory: str(factory.__name__))
def test_g02_of_many_callers_one_leases_each_chunk(
    factory: Factory, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    chunks, clock, line = scale(20, 1_000), SetClock(), Barrier(CALLERS, timeout=LONGEST_S)
    with master(tmp_path, POLICY, clock, factory) as world:
        account = world.account(quota_us=PLENTY_US)

    def ask(stores: Stores, caller: int) -> list[tuple[str, int, int]]:
        world, won = world_on(stores, clock, POLICY), []
        for turn in range(chunks // AT_ONCE):
            if caller == turn % CALLERS:
                world.start(account, tasks=AT_ONCE, chunksize=1, idempotency_key=f"{turn}")
            line.wait()
            leases = patiently(partial(world.retrieve, f"w{caller}", chunks=1, attempt=f"{caller}-{turn}"))
            won += [(lease.package_id, lease.start, lease.attempt) for lease in leases]
            line.wait()
            stores.queue.delete([lease.receipt for lease in leases])  # hidden messages make a stand-in slow
        return won

    leased = Counter(won for each in race(factory, tmp_path, clock, CALLERS, ask) for won in each)
    assert set(leased.values()) == {1}
    assert [attempt for *_, attempt in leased] == [1] * chunks
    reached(f"{factory.__name__}: {CALLERS} callers for each of {chunks:,} chunks: 1 winner each")
