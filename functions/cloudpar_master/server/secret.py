"""Finds or makes the secret of a data folder, and checks that it is the one that encrypted the folder's stored keys."""

import hmac

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.secret_mark import SecretMark

from .data_folder import DataFolder, DataFolderError


def secret_of(folder: DataFolder, database: Database, *, new: bool = False) -> bytes:
    """Return the secret that signs links and encrypts accounts' keys. If the folder has none, make one.

    Args:
        folder: The data folder, which has the file with the secret.
        database: Keeps a mark that identifies the secret on which the database depends.
        new: Whether to go on although the database depends on a secret that is lost or differs from the folder's.

    Raises:
        DataFolderError: The database depends on a secret that is lost or differs from the folder's, and `new` is False;
            or a new secret cannot be written.
        OSError: The stored secret cannot be read.
        sqlite3.Error: The database cannot be read or written.
    """
    kept, mark = folder.kept_secret(), SecretMark(database)
    if not new and not mark.fits(None if kept is None else _mark(kept)):
        name = folder.database.name
        what = f"is not the secret that {name} depends on" if kept else f"is lost or broken, and {name} depends on it"
        raise DataFolderError(
            f"{folder.secret_path} {what}: put back the one that was saved with this folder; or go on without it by "
            "--new-secret, and then packages that have not ended fail, and results that were not read raise "
            "SealBroken; or choose another folder by --data"
        )
    secret = kept or folder.make_secret()
    mark.keep(_mark(secret))
    return secret


def key_secret(secret: bytes) -> bytes:
    """Derive from the secret the key that encrypts the keys of accounts. No table contains this key."""
    return hmac.digest(secret, b"keys of accounts", "sha256")


def _mark(secret: bytes) -> bytes:
    """Return a mark that identifies the secret and does not reveal it: 256 random bits cannot be guessed."""
    return hmac.digest(secret, b"mark of the secret", "sha256")
