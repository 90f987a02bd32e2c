"""Real executors run task code."""

import os
import threading
import time
from pathlib import Path
from typing import Any

from support.leases import code_of, inline, lease_of
from support.running_agent import TOKEN
from worker.scripted_master import ScriptedMaster
from worker.tasks import run, value_of


def test_values_of_a_range_come_back(pool: ScriptedMaster) -> None:
    results = run(pool, lambda number: number**2, 50)
    assert [value_of(result) for result in results] == [number**2 for number in range(50)]
    assert all(result.duration_us >= 1 for result in results)
    assert all(result.stdout is None and result.stderr is None for result in results)


def test_functions_are_called_as_the_package_says(pool: ScriptedMaster) -> None:
    def join(*args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    (value,) = run(pool, lambda item: item, data=inline([{"a": 1}]))
    (args,) = run(pool, join, data=inline([(1, 2)]), call="args")
    (both,) = run(pool, join, data=inline([((1,), {"b": 2})]), call="args_kwargs")
    assert value_of(value) == {"a": 1}
    assert value_of(args) == ((1, 2), {})
    assert value_of(both) == ((1,), {"b": 2})


def test_the_items_of_a_lease_with_several_ranges_are_consecutive(pool: ScriptedMaster) -> None:
    lease = lease_of(lambda item: item, 10, ranges=[(1, 3), (7, 9)], data=inline(["b", "c", "h", "i"]))
    pool.hand_out(lease)
    results = pool.wait_for_results(4, lease.package_id)
    assert {index: value_of(result) for index, result in results.items()} == {1: "b", 2: "c", 7: "h", 8: "i"}


def test_many_functions_leave_no_memory_behind(pool: ScriptedMaster) -> None:
    source = (
        "def f(number):\n    '{}'\n    import gc\n"
        "    return sum(getattr(found, '__name__', '') == 'f' for found in gc.get_objects())"
    )
    for number in range(200):
        scope: dict[str, Any] = {"__name__": __name__}
        exec(source.format(number), scope)
        code = code_of(scope["f"])
        (result,) = run(pool, code)
    assert value_of(result) < 120


def test_a_thread_left_running_does_not_block_the_executor(pool: ScriptedMaster) -> None:
    def leave(_number: int) -> int:
        threading.Thread(target=time.sleep, args=(1000,)).start()
        return os.getpid()

    (result,) = run(pool, leave, account="threads")
    old = value_of(result)
    assert all(value_of(other) != old for other in run(pool, lambda _number: os.getpid(), 2, account="others"))


def test_the_agents_token_is_nowhere_near_task_code(pool: ScriptedMaster) -> None:
    def look(_number: int, needle_hex: str = TOKEN.encode().hex()) -> bool:
        needle = bytes.fromhex(needle_hex)
        for pid in (os.getpid(), os.getppid()):
            if needle in Path(f"/proc/{pid}/environ").read_bytes() + Path(f"/proc/{pid}/cmdline").read_bytes():
                return True
        return False

    assert value_of(run(pool, look)[0]) is False
