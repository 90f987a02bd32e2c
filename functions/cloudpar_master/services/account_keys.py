import hashlib
import hmac
import logging
from collections.abc import Sequence
from typing import NamedTuple

from cloudpar_master.core.recent import Recent
from cloudpar_master.ports import KeySafe
from cloudpar_master.ports.key_safe import ENCRYPTED_BYTES
from cloudpar_protocol.client_messages import StartTasks
from cloudpar_protocol.errors import BadRequest, Unavailable
from cloudpar_protocol.seals import Seals

from .backend import Backend

LOST = (
    "the key of account %s was lost, since the secret that encrypted it has changed; the account gets a new one: its "
    "packages that have not ended fail, and results that were not read raise SealBroken"
)
KNOWN = 1_000
"""For how many accounts a process remembers the keys. If none of the remembered keys made a package's seal, the process
reads the account's keys again."""

KEPT = 8
"""How many keys of an account are stored. After this many rotations, the packages that the oldest key sealed can no
longer be verified."""

log = logging.getLogger("cloudpar_master")


class _Known(NamedTuple):
    """The keys of an account, the newest first: in their stored form, and decrypted."""

    stored: bytes
    keys: tuple[bytes, ...]


class AccountKeys:
    """The keys that seal the payloads of accounts. A key is made when it is first needed, and stored encrypted.

    An operator may rotate the key of an account: new packages get the new key, and earlier packages keep theirs. The
    stored bytes are the encrypted keys one after another, the newest first. After a rotation, the stored bytes end with
    a hash of the rotation's idempotency key. The hash is shorter than an encrypted key, so the number of stored bytes
    shows whether there is a hash. If the secret that encrypts the keys has changed, the stored keys are lost, and the
    accounts get new ones.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._known = Recent[str, _Known](KNOWN)

    def key(self, account_id: str) -> bytes | None:
        """Return an account's key for new packages; None if this deployment has no safe for keys.

        Raises:
            Unavailable: The account does not exist, another process has just stored a key that this process cannot
                decrypt, or the safe cannot encrypt keys now (see KeySafe).
        """
        # Another process may have rotated the key, so the keys that this process remembers are not enough.
        safe = self._backend.safe
        return None if safe is None else self._read(safe, account_id)[0]

    def key_of(self, account_id: str, package_id: str, start: StartTasks) -> bytes | None:
        """Return the key with which a package was sealed; None if this deployment has no safe for keys.

        The seal of the task code shows which key it was. If none of the keys made this seal, return the newest key: the
        worker then refuses the task code.

        Raises:
            Unavailable: See `key`.
        """
        safe = self._backend.safe
        if safe is None:
            return None
        known = self._known.get(account_id)
        keys = () if known is None else known.keys
        maker = _maker(keys, package_id, start)
        if maker is None:
            # Another process may have rotated the key since this process has read the keys.
            keys = self._read(safe, account_id)
            maker = _maker(keys, package_id, start) or keys[0]
        return maker

    def rotate(self, account_id: str, idempotency_key: str) -> None:
        """Make a new key the first of the stored keys. A repeated call with the same idempotency key does nothing.

        Raises:
            BadRequest: This deployment has no safe for keys.
            Unavailable: Other processes change the keys at the same time, or the safe cannot encrypt keys now.
        """
        safe, accounts = self._backend.safe, self._backend.accounts
        if safe is None:
            raise BadRequest("this master makes no seals, so there is no key to rotate")
        mark = hashlib.sha256(idempotency_key.encode()).digest()[:16]
        fresh = safe.make(account_id)
        stored = accounts.key(account_id)
        before = stored or b""
        whole = len(before) // ENCRYPTED_BYTES * ENCRYPTED_BYTES
        if before[whole:] == mark:
            return
        after = fresh + before[: min(whole, (KEPT - 1) * ENCRYPTED_BYTES)] + mark
        if accounts.keep_key(account_id, after, stored) != after:
            raise Unavailable("another process has just changed the account's keys: try again")

    def _read(self, safe: KeySafe, account_id: str) -> tuple[bytes, ...]:
        """Return the stored keys of an account, the newest first. Make a key if there is none. Raises like `key`."""
        accounts = self._backend.accounts
        stored, known = accounts.key(account_id), self._known.get(account_id)
        if known is not None and known.stored == stored:
            return known.keys
        keys = _opened(safe, account_id, stored)
        if not keys:
            if stored is not None:
                log.error(LOST, account_id)
            stored = accounts.keep_key(account_id, safe.make(account_id), stored)
            keys = _opened(safe, account_id, stored)
        if stored is None or not keys:
            raise Unavailable("the account's key is being made: try again")
        self._known[account_id] = _Known(stored, keys)
        return keys


def _opened(safe: KeySafe, account_id: str, stored: bytes | None) -> tuple[bytes, ...]:
    """Decrypt the stored keys. Leave out keys that an earlier secret encrypted: they are lost."""
    stored = stored or b""
    starts = range(0, len(stored) - ENCRYPTED_BYTES + 1, ENCRYPTED_BYTES)
    opened = (safe.open(account_id, stored[start : start + ENCRYPTED_BYTES]) for start in starts)
    return tuple(key for key in opened if key is not None)


def _maker(keys: Sequence[bytes], package_id: str, start: StartTasks) -> bytes | None:
    """Return the key that made the seal of a package's code; None if none of these keys did."""
    for key in keys:
        seal = Seals(key, package_id).code(
            start.code, start.data, call=start.call, codec=start.codec, python=start.python, tasks=start.n
        )
        if hmac.compare_digest(seal, start.seal or b""):
            return key
    return None
