"""Runs the crash scenarios on the adapters of AWS."""

from pathlib import Path

from aws.in_process import in_process, remove
from master.crash.crashing import Fuse
from master.crash.scenario import Scenario
from master.crash.scenarios import run
from master.crash.world import World
from support.clock import SetClock

from .room import with_room


def ran(scenario: Scenario, folder: Path, fuse: Fuse) -> World:
    """Run a scenario on resources of its own, since moto scans whole tables."""
    try:
        return with_room(lambda: run(scenario, in_process, folder, SetClock(), name="run", fuse=fuse))
    finally:
        remove(folder)


def name_of(scenario: Scenario) -> str:
    return scenario.name
