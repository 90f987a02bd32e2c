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
    TaskRoles,
    WorkerRegistry,
)
from cloudpar_master.ports.fleet import StandingFleet
from cloudpar_protocol.proofs import hash_token

__all__ = ["Backend", "hash_token"]


class Backend(NamedTuple):
    """The parts of a master: its ports, its policy, and the hashes of the workers' and the operators' tokens.

    An empty hash matches no token. Without `safe`, packages are not sealed. `default_account` is the account of the
    user who runs the master; "" if there is none. `only_made_tokens` says whether commands of this project have made
    the tokens of all accounts. If so, the master refuses a token of another form without a look-up. It is False for an
    embedded master, whose user may choose any token. `roles` gives tasks AWS credentials; None: this master has none to
    give.
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
    default_account: str = ""
    only_made_tokens: bool = False
    roles: TaskRoles | None = None
