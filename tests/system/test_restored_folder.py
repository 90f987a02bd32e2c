"""A backup of the data folder takes the place of a folder whose later results a client has read already."""

import shutil
from pathlib import Path

from cloudpar import Pool
from support.master_process import TOKENS, Master
from support.running_agent import RunningAgent
from support.task_functions import number_after_gate

READ, REST = 12, 10
"""How many results the client reads after the backup, and how many tasks end only after the restore."""


def start(data: Path, port: int = 0) -> Master:
    return Master(data, "--port", str(port), stdin=True, settings={"lease_s": 1.2})


def test_a_client_that_has_read_more_than_a_restored_backup_contains_gets_each_result_once(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    gates = [tmp_path / f"gate {number}" for number in range(1 + READ + REST)]
    master = start(data)
    agent = RunningAgent(master.endpoint, token=TOKENS["worker_token"], executors=1).wait_until_ready()
    try:
        with Pool(master.endpoint, TOKENS["user_token"], progress=False) as pool:
            results = pool.map_unordered(number_after_gate, [(n, str(gate)) for n, gate in enumerate(gates)])
            gates[0].touch()
            assert next(results) == 0
            master.end()
            shutil.copytree(data, backup)
            master = start(data, master.port)
            for number in range(1, 1 + READ):  # one publication, and so one result page, for each task
                gates[number].touch()
                assert next(results) == number
            master.kill()
            shutil.rmtree(data)
            backup.rename(data)
            master = start(data, master.port)
            for gate in gates[1 + READ :]:
                gate.touch()
            assert sorted(results) == list(range(1 + READ, len(gates)))
    finally:
        agent.close()
        master.kill()
