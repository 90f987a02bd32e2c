import logging

from cloudpar_master.core.recent import Recent
from cloudpar_protocol.errors import Unavailable
from cloudpar_protocol.seals import Seals

from .backend import Backend

LOST = (
    "the key of account %s was lost, since the secret that encrypted it has changed; the account gets a new one: its "
    "packages that have not ended fail, and results that were not read raise SealBroken"
)
KNOWN = 1_000
"""How many keys are remembered. A key changes only if the secret that encrypts it was lost."""

log = logging.getLogger("cloudpar_master")


class AccountKeys:
    """The keys that seal the payloads of accounts. A key is made when it is first needed, and stored encrypted.

    If the secret that encrypts the keys has changed, the stored keys are lost, and the accounts get new ones.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known = Recent[str, bytes](KNOWN)

    def key(self, account_id: str) -> bytes | None:
        """Return an account's key; None if this deployment has no safe for keys, so that its packages are not sealed.

        Raises:
            Unavailable: The account does not exist, another process has just stored a key that this one cannot decrypt,
                or the safe cannot encrypt keys now (see KeySafe).
        """
        safe = self._backend.safe
        if safe is None:
            return None
        known = self._known.get(account_id)
        if known is None:
            stored = self._backend.accounts.key(account_id)
            known = None if stored is None else safe.open(account_id, stored)
            if known is None:
                if stored is not None:
                    log.error(LOST, account_id)
                stored = self._backend.accounts.keep_key(account_id, safe.make(account_id), stored)
                known = None if stored is None else safe.open(account_id, stored)
            if known is None:
                raise Unavailable("the account's key is being made: try again")
            self._known[account_id] = known
        return known

    def seals(self, account_id: str, package_id: str) -> Seals | None:
        """Return what makes the seals of a package; None if this deployment has no safe for keys.

        Raises:
            Unavailable: As for `key`.
        """
        key = self.key(account_id)
        return None if key is None else Seals(key, package_id)
