"""Small runs of all that a master does. Tests repeat them with a crash at each of their port calls."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from cloudpar_master.services import folding
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import CancelTasks
from support.clock import SetClock
from support.stores import Factory

from .client import Client
from .crashing import Fuse
from .revocation import Revocation
from .rival import ATTEMPTS
from .run import Run
from .scenario import Scenario
from .world import POLICY, TIMER_S, World

SHORT = replace(POLICY, retention_s=4 * TIMER_S, tombstone_s=4 * TIMER_S)
"""Ended packages are forgotten after a few runs of the timer."""


def run(
    scenario: Scenario, factory: Factory, folder: Path, clock: SetClock, *, name: str, fuse: Fuse | None = None
) -> World:
    """Run a scenario, with a crash or without, and check the outcome. Runs on the same data need different names."""
    with (
        pytest.MonkeyPatch.context() as patch,
        World(
            factory, folder, clock, name, fuse or Fuse(),
            granted_us=scenario.granted_us, rival=scenario.rival, policy=scenario.policy,
        ) as world,
    ):  # fmt: skip
        if scenario.rival:
            patch.setattr(folding, "ATTEMPTS", ATTEMPTS)
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


PAUSING = replace(POLICY, fold_pause_s=1.0, many_workers=1)

WORK = [
    Scenario("payloads in blobs", blobs=True),
    Scenario("large code and results", more_bytes=20_000),
    Scenario("workers die with the master", mortal=True),
    Scenario("a worker gives tasks back", gives_back=True),
    Scenario("no worker has the module", lacking=True),
    Scenario("another master folds, too", rival=True, gives_back=True),
    Scenario("a task kills its workers", "error", deadly=3),
    Scenario("publications wait for the next fold", policy=PAUSING, gives_back=True),
    Scenario("the quota ends", "failed", "quota", granted_us=2_500),
    Scenario("all tasks are cancelled", "cancelled", meanwhile=cancel_all),
    Scenario("some tasks are cancelled", meanwhile=cancel_some),
    Scenario("queued tasks are cancelled", meanwhile=cancel_queued),
]
"""What may happen to a running package."""

ENDS = [
    Scenario("no client acknowledges", policy=SHORT, blobs=True, acknowledged=False, forgotten=True),
    Scenario("results stay until the tombstone goes", policy=replace(SHORT, kept_bytes=10**6), forgotten=True),
    Scenario("the package runs too long", "failed", "expired", policy=replace(POLICY, lifetime_s=2.5)),
    Scenario("the account is revoked", policy=SHORT, revoked=True),
    Scenario("the package is sealed", sealed=True),
    Scenario("the account's key is lost", "failed", "seal", sealed=True, at_once=lose_secret),
]
"""How packages, accounts and keys end."""

SCENARIOS = WORK + ENDS
