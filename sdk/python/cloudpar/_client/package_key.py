"""The idempotency key and the seals of a package that is about to start."""

import secrets
from typing import NamedTuple

from cloudpar.errors import SealBroken
from cloudpar_protocol.client_messages import HelloReply
from cloudpar_protocol.seals import Seals, package_id
from cloudpar_protocol.transport.payload_folder import PayloadFolder


class PackageKey(NamedTuple):
    """The values that the client needs before it can serialize a new package.

    Attributes:
        key: The package's idempotency key.
        seals: Makes and verifies the package's seals. None if the package is not sealed, since the pool has its own
            master or the master sends no seal key.
        folder: The payload folder of the pool's own master, to which the client writes large task data of maps. None if
            the pool has no master of its own, so that the client uploads large task data.
    """

    key: str
    seals: Seals | None
    folder: PayloadFolder | None = None


def new_package_key(who: HelloReply) -> PackageKey:
    """Make the key of a new package of this account, with its seals if the master has sent a seal key."""
    key = secrets.token_hex(16)
    if who.seal_key is None or who.account_id is None:
        return PackageKey(key, None)
    return PackageKey(key, Seals(who.seal_key, package_id(who.account_id, key, sealed=True)))


def seals_of(who: HelloReply, package: str) -> Seals:
    """Return the seals of an existing sealed package. `who` must be the reply to a request that names this package.

    Raises:
        SealBroken: The master has sent no key.
    """
    if who.seal_key is None:
        raise SealBroken(f"package {package} is sealed, and this master gives no key to verify its results: update it")
    return Seals(who.seal_key, package)
