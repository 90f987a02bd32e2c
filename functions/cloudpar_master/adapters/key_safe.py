import secrets
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from cloudpar_master.ports import KeySafe
from cloudpar_protocol.seals import KEY_BYTES

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


class AesGcmSafe(KeySafe):
    """Makes accounts' keys, and encrypts them by AES-256-GCM.

    The account's id is the associated data of the encryption. So if an encrypted key is copied to another account, it
    cannot be decrypted there.

    Args:
        secret: Returns the 32 bytes of the key that encrypts the accounts' keys. The safe calls this function at the
            first use; if the function raises an error, the safe calls it again at the next use.
    """

    def __init__(self, secret: Callable[[], bytes]) -> None:
        self._secret = secret

    @cached_property
    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - loaded at the first use only: it takes long

        return AESGCM(self._secret())

    def make(self, account_id: str) -> bytes:
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secrets.token_bytes(KEY_BYTES), account_id.encode())

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only a master with keys loads it

        try:
            return self._cipher.decrypt(encrypted[:_NONCE_BYTES], encrypted[_NONCE_BYTES:], account_id.encode())
        except (InvalidTag, ValueError):
            return None
