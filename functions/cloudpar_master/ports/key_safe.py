from typing import Protocol


class KeySafe(Protocol):
    """Makes accounts' keys, and encrypts them with a key of its own, which is in no table."""

    def make(self, account_id: str) -> bytes:
        """Make a new key for an account, and return it encrypted."""
        ...

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        """Decrypt a key; None if it was encrypted for another account or by another safe."""
        ...
