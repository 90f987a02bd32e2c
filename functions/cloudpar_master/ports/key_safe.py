from typing import Protocol


class KeySafe(Protocol):
    """Makes accounts' keys, and encrypts them with a key of its own, which lies in no table."""

    def make(self, account_id: str) -> bytes:
        """A new key for an account, encrypted."""
        ...

    def open(self, account_id: str, encrypted: bytes) -> bytes | None:
        """The key; None if it is not this account's, or was encrypted with another key than this safe's."""
        ...
