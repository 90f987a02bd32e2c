from collections.abc import Callable
from typing import NamedTuple

from cloudpar_master.core.policy import Policy

from .client import Client
from .world import POLICY, World

PLENTY_US = 10**12

Deed = Callable[[World, Client], None]


class Scenario(NamedTuple):
    """What is special about a run.

    Attributes:
        state, reason: How the package ends.
        mortal: Workers die with the master, and have forgotten their leases when they start again.
        gives_back: After the first task of its first lease, the first worker gives the rest back.
        lacking: Workers lack what the package needs, and give their leases back unless no worker has it.
        deadly: This task ends its worker each time.
        blobs: Task code, data and every second result go to the blob store.
        more_bytes: Bytes by which the task code and results are larger.
        rival: Another master folds, too, and wins most races.
        sealed: The client seals with its account's key, which the master makes in this run.
        at_once: What happens once the package is started.
        meanwhile: What happens once the client has its first result.
        revoked: An operator grants and revokes the account while two packages run.
        acknowledged: The client acknowledges the package.
        forgotten: The run goes on until the package's tombstone is gone.
    """

    name: str
    state: str = "completed"
    reason: str | None = None
    policy: Policy = POLICY
    granted_us: int = PLENTY_US
    mortal: bool = False
    gives_back: bool = False
    lacking: bool = False
    deadly: int | None = None
    blobs: bool = False
    more_bytes: int = 0
    rival: bool = False
    sealed: bool = False
    at_once: Deed | None = None
    meanwhile: Deed | None = None
    revoked: bool = False
    acknowledged: bool = True
    forgotten: bool = False

    @property
    def stops_tasks(self) -> bool:
        """Whether the account pays for tasks that have no result."""
        return self.state == "cancelled" or self.reason == "expired"
