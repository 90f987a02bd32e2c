import hashlib
from typing import NamedTuple

from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import (
    AccountStore,
    BlobStore,
    Clock,
    Fleet,
    Ids,
    KeySafe,
    PackageStore,
    TaskQueue,
    WorkerRegistry,
)
from cloudpar_master.ports.fleet import StandingFleet


class Backend(NamedTuple):
    """What a master runs on: its ports, its policy, and the hashes of the workers' and the operators' tokens.

    An empty hash matches no token. Without `safe`, packages are not sealed.
    """

    packages: PackageStore
    accounts: AccountStore
    queue: TaskQueue
    registry: WorkerRegistry
    blobs: BlobStore
    clock: Clock
    ids: Ids
    policy: Policy
    worker_token_hash: str
    admin_token_hash: str
    fleet: Fleet = StandingFleet()
    safe: KeySafe | None = None


def hash_token(token: str) -> str:
    """Return the hash of a token, which is stored. A token has 256 random bits, so a plain SHA-256 does not reveal it.

    >>> hash_token("secret")[:8]
    '2bb80d53'
    """
    return hashlib.sha256(token.encode()).hexdigest()
