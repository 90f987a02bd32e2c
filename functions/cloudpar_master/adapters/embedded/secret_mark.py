from .database import Database


class SecretMark:
    """By which a database knows the secret that its accounts' keys are encrypted with."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def fits(self, mark: bytes | None) -> bool:
        """Whether no key is lost to whoever has the secret of this mark; None: there is no secret.

        A database that knows no mark yet takes any secret, but not none.
        """
        if self._db.execute("SELECT 1 FROM account_keys LIMIT 1").fetchone() is None:
            return True
        kept = self._db.execute("SELECT mark FROM secret_mark").fetchone()
        return mark is not None and (kept is None or kept[0] == mark)

    def keep(self, mark: bytes) -> None:
        """From now on it is this one."""
        self._db.execute("INSERT OR REPLACE INTO secret_mark VALUES (1, ?)", (mark,))
