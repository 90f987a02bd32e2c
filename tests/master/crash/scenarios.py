"""Small runs of everything that a master does, to be repeated with a crash at each of their port calls."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.services import folding
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks
from master.stores import Factory, SetClock

from .client import Client
from .crashing import Fuse
from .revocation import Revocation
from .rival import TRIES
from .run import Run
from .scenario import Scenario
from .world import POLICY, World

SHORT = replace(POLICY, retention_s=4.0, tombstone_s=4.0)
"""What has ended is gone a few turns later."""


def run(
    scenario: Scenario, factory: Factory, folder: Path, clock: SetClock, *, name: str, fuse: Fuse | None = None
) -> World:
    """Run it, with a crash or without, and check the outcome. Runs on the same data need different names."""
    with (
        pytest.MonkeyPatch.context() as patch,
        World(
            factory, folder, clock, name, fuse or Fuse(),
            granted_us=scenario.granted_us, rival=scenario.rival, policy=scenario.policy,
        ) as world,
    ):  # fmt: skip
        if scenario.rival:
            patch.setattr(folding, "TRIES", TRIES)
        ran = Revocation(world, scenario) if scenario.revoked else Run(world, scenario)
        ran.to_the_end()
        ran.check()
        return world


def cancel_all(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id))


def cancel_some(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id, ranges=[(1, 3), (5, 6)]))


def cancel_queued(world: World, client: Client) -> None:
    world.ask("user", routes.CANCEL_TASKS, CancelTasks(package_id=client.package_id, only_queued=True))


def lose_secret(world: World, _: Client) -> None:
    world.lose_secret()


WORK = [
    Scenario("payloads in blobs", blobs=True),
    Scenario("large results", more_bytes=20_000),
    Scenario("workers die with the master", mortal=True),
    Scenario("gives back", gives_back=True),
    Scenario("no worker has its module", lacking=True),
    Scenario("others fold too", rival=True, gives_back=True),
    Scenario("a deadly task", "error", deadly=3),
    Scenario("quota", "failed", "quota", granted_us=2_500),
    Scenario("cancel all", "cancelled", meanwhile=cancel_all),
    Scenario("cancel some", meanwhile=cancel_some),
    Scenario("cancel queued", meanwhile=cancel_queued),
]
"""What packages go through; small enough that each of their points is tried each time."""

ENDS = [
    Scenario("nobody acknowledges", policy=SHORT, blobs=True, acknowledged=False, forgotten=True),
    Scenario("kept for its tombstone", policy=replace(SHORT, kept_bytes=10**6), forgotten=True),
    Scenario("lives too long", "failed", "expired", policy=replace(POLICY, lifetime_s=2.5)),
    Scenario("an account revoked", policy=SHORT, revoked=True),
    Scenario("sealed", sealed=True),
    Scenario("its key is lost", "failed", "seal", sealed=True, at_once=lose_secret),
]
"""What becomes of packages, accounts and keys."""

SCENARIOS = WORK + ENDS
