"""The master's clock, with a machine's clock that is set, and a steady one that only counts up."""

import logging
from itertools import count
from pathlib import Path

import pytest

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.master_clock import MOST_AWAY_S, REPEAT_S, SAVE_S, MasterClock
from cloudpar_master.adapters.embedded.task_queue import MEMORY_S, SqliteTaskQueue
from cloudpar_master.adapters.system import RandomIds
from cloudpar_master.ports import Sending
from support.clock import NOW, SetClock

DAY_S = 86_400.0


class Machine:
    """A machine with two clocks and a folder, on which masters start and end."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.date, self.steady = NOW, 100.0

    def start(self) -> MasterClock:
        clock = MasterClock(self.database, lambda: self.date, lambda: self.steady)
        clock.check()
        return clock

    def away(self, seconds: float) -> None:
        """Let time pass without a master. The machine starts again meanwhile."""
        self.steady = 1.0
        self.date += seconds

    def passes(self, seconds: float) -> None:
        self.steady += seconds
        self.date += seconds


@pytest.fixture
def machine(database: Database) -> Machine:
    return Machine(database)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "cloudpar_master")
    return caplog


def test_the_master_of_a_new_folder_starts_with_the_machines_clock(
    machine: Machine, log: pytest.LogCaptureFixture
) -> None:
    clock = machine.start()
    machine.passes(10.0)
    assert (clock.now(), clock.date(clock.now()), log.messages) == (NOW + 10, NOW + 10, [])


@pytest.mark.parametrize("jump_s", [-3_600.0, 3_600.0, 1e9])
def test_setting_the_machines_clock_moves_dates_and_not_the_masters_time(machine: Machine, jump_s: float) -> None:
    clock = machine.start()
    machine.date += jump_s
    machine.passes(1.0)
    assert clock.now() == NOW + 1
    assert clock.date(NOW) == NOW + jump_s


def test_one_moment_has_one_date_although_time_passes_between_the_reads_of_the_two_clocks(machine: Machine) -> None:
    reads = count()

    def late() -> float:
        """Read the machine's clock a few microseconds late, as a busy processor does."""
        return machine.date + 7e-6 * (next(reads) % 50)

    clock = MasterClock(machine.database, late, lambda: machine.steady)
    dates: set[float] = set()
    for _ in range(1_000):
        machine.passes(0.001_3)
        dates.add(clock.date(NOW + 0.123_5))
    assert len(dates) == 1
    assert dates.pop() == pytest.approx(NOW + 0.123_5, abs=0.002)


def test_dates_are_whole_milliseconds_and_follow_a_clock_that_is_corrected_slowly(machine: Machine) -> None:
    clock = machine.start()
    for _ in range(100):
        machine.date += 0.000_1
        machine.passes(1.0)
        date = clock.date(NOW)
        assert date == round(date, 3)
        assert date == pytest.approx(NOW + machine.date - machine.steady - NOW + 100.0, abs=0.002)


@pytest.mark.parametrize(
    ("away_s", "counted_s"),
    [(60.0, 60.0), (MOST_AWAY_S, MOST_AWAY_S), (30 * DAY_S, MOST_AWAY_S), (1e9, MOST_AWAY_S), (-3_600.0, 0.0)],
)
def test_a_restart_counts_the_time_without_a_master_up_to_a_day_and_never_backwards(
    machine: Machine, away_s: float, counted_s: float
) -> None:
    machine.start()
    machine.away(away_s)
    clock = machine.start()
    assert clock.now() == NOW + counted_s
    assert clock.date(clock.now()) == machine.date


def test_a_jump_before_a_restart_is_not_counted_as_time_without_a_master(machine: Machine) -> None:
    """Also if the master is killed: it saves its time as soon as it notices the jump."""
    clock = machine.start()
    machine.passes(1.0)
    machine.date += 3_600.0
    clock.check()
    machine.away(60.0)
    assert machine.start().now() == NOW + 61


def test_a_killed_master_loses_at_most_the_time_since_the_last_save(machine: Machine) -> None:
    clock = machine.start()
    for _ in range(round(SAVE_S)):
        machine.passes(1.0)
        clock.check()
    machine.passes(SAVE_S - 1)
    clock.check()
    machine.away(-3_600.0)
    assert machine.start().now() == NOW + SAVE_S


def test_a_master_that_ends_saves_its_time(machine: Machine) -> None:
    clock = machine.start()
    machine.passes(5.0)
    clock.save()
    machine.away(-3_600.0)
    assert machine.start().now() == NOW + 5


def test_the_log_says_once_that_the_clock_was_set_and_by_how_much(
    machine: Machine, log: pytest.LogCaptureFixture
) -> None:
    clock = machine.start()
    machine.date -= 3_600.0
    for _ in range(3):
        machine.passes(1.0)
        clock.check()
    (said,) = log.messages
    assert "this machine's clock was set back by 3600 s" in said


def test_a_clock_that_is_set_again_and_again_gets_one_line_a_minute(
    machine: Machine, log: pytest.LogCaptureFixture
) -> None:
    clock = machine.start()
    for _ in range(round(REPEAT_S)):
        machine.date += 10.0
        machine.passes(1.0)
        clock.check()
    assert len(log.messages) == 1
    machine.passes(1.0)
    clock.check()
    assert "was set ahead by 590 s" in log.messages[1]


def test_a_machine_that_slept_has_not_set_its_clock(machine: Machine, log: pytest.LogCaptureFixture) -> None:
    clock = machine.start()
    machine.passes(8 * 3_600.0)  # `steady` counts it
    clock.check()
    assert (clock.now(), log.messages) == (NOW + 8 * 3_600.0, [])


def test_a_clock_that_was_set_while_no_master_ran_is_logged_at_the_start(
    machine: Machine, log: pytest.LogCaptureFixture
) -> None:
    machine.start()
    machine.away(-3_600.0)
    machine.start()
    machine.away(30 * DAY_S)
    machine.start()
    assert "was set back by 3600 s" in log.messages[0]
    assert "no master ran on this folder for 30.0 days: the master counts one of them" in log.messages[1]
    assert len(log.messages) == 2


def test_a_folder_that_an_earlier_release_used_meanwhile_goes_on_by_the_machines_clock(machine: Machine) -> None:
    """That release wrote its own times. A master that stayed behind them would not end its leases for days."""
    machine.start()
    machine.away(7 * DAY_S)
    earlier = SetClock()
    earlier.time = machine.date
    queue = SqliteTaskQueue(machine.database, earlier, RandomIds())
    queue.send([Sending("chunk", "chunk", "ann", "p")])
    assert queue.receive(1, 6.0, "attempt")
    machine.away(MEMORY_S)
    clock = machine.start()
    assert clock.now() == machine.date
    now = SqliteTaskQueue(machine.database, clock, RandomIds())
    assert now.receive(1, 6.0, "another attempt")


def test_a_database_of_an_earlier_release_goes_on_by_the_machines_clock(tmp_path: Path) -> None:
    path = tmp_path / "earlier.sqlite"
    Database(path).close()
    database = Database(path)
    database.execute("DROP TABLE clock")
    database.close()
    assert Machine(Database(path)).start().now() == NOW
