"""Who a client is at its master, and what that makes of a package before it is started."""

import secrets
from typing import NamedTuple

from cloudpar.errors import SealBroken
from cloudpar_protocol.client_messages import HelloReply
from cloudpar_protocol.payload_folder import PayloadFolder
from cloudpar_protocol.seals import Seals, is_sealed, package_id


class PackageKey(NamedTuple):
    """What a package begins with.

    Attributes:
        key: Its idempotency key.
        seals: Its seals; None: the master knows none.
        folder: Where large data of its tasks are written; None: they are uploaded.
    """

    key: str
    seals: Seals | None
    folder: PayloadFolder | None = None


def new_package_key(who: HelloReply) -> PackageKey:
    """Of a new package."""
    key = secrets.token_hex(16)
    if who.seal_key is None or who.account_id is None:
        return PackageKey(key, None)
    return PackageKey(key, Seals(who.seal_key, package_id(who.account_id, key, sealed=True)))


def seals_of(who: HelloReply, package: str) -> Seals | None:
    """Of a package that somebody else started.

    Raises:
        SealBroken: It is sealed, and the master gives no key.
    """
    if not is_sealed(package):
        return None
    if who.seal_key is None:
        raise SealBroken(f"package {package} is sealed, and this master gives no key to verify its results: update it")
    return Seals(who.seal_key, package)
