"""Guarantee 17: charges follow the agent's own monotonic clock, even if the wall clock is changed."""

import time
from collections.abc import Callable

from support.leases import lease_of
from support.running_agent import RunningAgent
from worker.scripted_master import ScriptedMaster

LEAPING = """
import itertools, runpy, sys, time
leaps = itertools.cycle([0.0, 4e9, 1.7e9])
time.time = lambda: next(leaps)
time.time_ns = lambda: int(next(leaps) * 1e9)
sys.argv[1:] = ["--stdin"]
runpy.run_module("cloudpar_worker", run_name="__main__", alter_sys=True)
"""


def test_g17_charges_do_not_depend_on_the_wall_clock(
    master: ScriptedMaster, start_agent: Callable[..., RunningAgent], reached: Callable[[str], None]
) -> None:
    def work(_number: int) -> None:
        time.sleep(0.05)

    start_agent(command=("-c", LEAPING))
    lease = lease_of(work, 10)
    master.hand_out(lease)
    results = master.wait_for_results(10, lease.package_id)
    durations = [result.duration_us for result in results.values()]
    assert {result.outcome for result in results.values()} == {"ok"}
    assert min(durations) >= 50_000
    assert max(durations) < 60_000_000
    reached("a wall clock that leaps by decades under the agent changes no charge")
