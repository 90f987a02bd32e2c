"""Running tasks on a scripted master, and reading their results."""

import pickle
from typing import Any

from cloudpar_protocol.payloads import TaskResult
from support.leases import lease_of
from worker.scripted_master import ScriptedMaster


def run(pool: ScriptedMaster, function: Any, tasks: int = 1, **changes: Any) -> list[TaskResult]:
    lease = lease_of(function, tasks, **changes)
    pool.hand_out(lease)
    results = pool.wait_for_results(tasks, lease.package_id)
    pool.wait(lambda: pool.closed(lease.lease_id))
    return [results[index] for index in sorted(results)]


def value_of(result: TaskResult) -> Any:
    assert result.outcome == "ok", result
    assert result.data is not None
    return pickle.loads(result.data)


def error_of(result: TaskResult) -> Any:
    assert result.outcome == "error", result
    assert result.data is not None, result
    return pickle.loads(result.data)
