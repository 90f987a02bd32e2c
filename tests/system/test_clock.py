"""The clock of the master's machine is set while a master works, or between two masters of a folder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from cloudpar import Pool
from support.books import close_books
from support.command import cloudpar_json
from support.customer import Customer
from support.master_process import TOKENS
from support.running_agent import RunningAgent
from support.task_functions import mark_and_wait
from support.waiting import HANG_S, until
from system.clock_master import AHEAD
from system.site import Site

HOUR_S, YEAR_S = 3_600.0, 365 * 86_400.0
LEASE_S = 1.2


class Machine(Site):
    """A master on a machine whose clock the test sets. Workers and clients see the true time."""

    def __init__(self, folder: Path, ahead_s: float = 0.0) -> None:
        folder.mkdir(exist_ok=True)
        self._ahead = folder / "ahead"
        self.set_clock(ahead_s)
        super().__init__(folder, "system.clock_master", {AHEAD: str(self._ahead)}, lease_s=LEASE_S)
        assert self.process.stderr is not None
        self.errors: IO[bytes] = self.process.stderr

    def set_clock(self, ahead_s: float) -> None:
        """Set the master's clock, by seconds from the true time."""
        new = self._ahead.with_suffix(".new")
        new.write_text(str(ahead_s))
        new.replace(self._ahead)

    def packages(self, token: str) -> dict[str, Any]:
        """Return what the user of a token sees of each package."""
        found = cloudpar_json("packages", "list", "--endpoint", self.endpoint, "--token", token)["packages"]
        return {each["package_id"]: each for each in found}


@contextmanager
def worker(machine: Machine) -> Iterator[RunningAgent]:
    agent = RunningAgent(machine.endpoint, token=TOKENS["worker_token"], executors=1)
    try:
        yield agent.wait_until_ready()
    finally:
        agent.close()


def test_a_map_with_a_lost_worker_completes_although_the_clock_is_set_back_by_an_hour(tmp_path: Path) -> None:
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    with Machine(tmp_path / "machine") as machine:
        with Customer(machine, "ann").pool() as pool:
            with worker(machine) as lost:
                results = pool.map(mark_and_wait, [(str(mark), str(gate))], timeout=HANG_S)
                until(mark.exists)
                lost.process.kill()
                machine.set_clock(-HOUR_S)
            gate.touch()
            with worker(machine):
                assert list(results) == ["done"]
        assert b"this machine's clock was set back by 3600 s" in machine.errors.readline()


@pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "running"])
def test_no_package_expires_when_a_machine_that_started_in_1970_gets_the_time(tmp_path: Path, restarted: bool) -> None:
    machine = Machine(tmp_path / "machine", -time.time())
    try:
        customer = Customer(machine, "ann")
        with customer.pool() as pool:
            ended = pool.map(abs, [-1, -2]).detach()
            with worker(machine):
                close_books(machine, customer.token, ended)
            running = pool.map(abs, [-3, -4]).detach()
        if restarted:
            machine.end()
            machine = Machine(tmp_path / "machine")
        machine.set_clock(0.0)
        seen = machine.packages(customer.token)
        assert {package_id: each["state"] for package_id, each in seen.items()} == {
            ended: "completed", running: "running",
        }  # fmt: skip
        with worker(machine), Pool(machine.endpoint, customer.token, progress=False) as pool:
            assert pool.attach(ended).results(HANG_S) == [1, 2]
            assert pool.attach(running).results(HANG_S) == [3, 4]
        dates = [each["started_at"] for each in seen.values()] + [seen[ended]["ended_at"]]
        assert all(abs(date - time.time()) < YEAR_S for date in dates), "people see when it was"
    finally:
        machine.__exit__(None, None, None)
