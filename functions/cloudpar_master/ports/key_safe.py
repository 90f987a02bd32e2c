from typing import Final, Protocol

ENCRYPTED_BYTES: Final = 60
"""The bytes of an encrypted key: nonce, key and tag. Several keys of an account are stored one after another."""


class KeySafe(Protocol):
    """Makes accounts' keys, and encrypts them with an encryption key, which is in no table.

    On AWS both calls raise Unavailable if the encryption key does not exist yet and the process may not create it. They
    raise botocore's ClientError if AWS does not let the process read the encryption key.
    """

    def make(self, account_id: str) -> bytes:
        """Make a new key for an account, and return it encrypted."""

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        """Return the decrypted key.

        None if the key is damaged, or if it was encrypted for another account or with another encryption key.
        """
