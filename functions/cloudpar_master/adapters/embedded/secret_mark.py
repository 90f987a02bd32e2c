from .database import Database


class SecretMark:
    """Remembers which secret encrypted the accounts' keys of a database."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def fits(self, mark: bytes | None) -> bool:
        """Whether a secret is the one that encrypted the stored keys. Always True if no key is stored.

        If the database has keys but no mark, the result is True for every secret.

        Args:
            mark: The mark of the secret; None if there is no secret. With None the result is False if a key is stored.
        """
        if self._db.execute("SELECT 1 FROM account_keys LIMIT 1").fetchone() is None:
            return True
        kept = self._db.execute("SELECT mark FROM secret_mark").fetchone()
        return mark is not None and (kept is None or kept[0] == mark)

    def keep(self, mark: bytes) -> None:
        """Remember the mark of the secret that encrypts the accounts' keys from now on."""
        self._db.execute("INSERT OR REPLACE INTO secret_mark VALUES (1, ?)", (mark,))
