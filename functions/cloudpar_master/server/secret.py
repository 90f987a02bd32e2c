"""The secret of a data folder: whether it is the one that the folder's database was made under, and its uses."""

import hmac

from cloudpar_master.adapters.embedded.database import Database
from cloudpar_master.adapters.embedded.secret_mark import SecretMark

from .data_folder import DataFolder, DataFolderError


def secret_of(folder: DataFolder, database: Database, *, new: bool = False) -> bytes:
    """What links are signed with and keys encrypted. It is made where nothing depends on another.

    Args:
        folder: Where it is kept.
        database: Where its mark is kept.
        new: Go on with another than the database knows: the one that is there, or a fresh one.

    Raises:
        DataFolderError: It was lost, or is another's.
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
    """What accounts' keys are encrypted with: the same secret, for another purpose. In no table."""
    return hmac.digest(secret, b"keys of accounts", "sha256")


def _mark(secret: bytes) -> bytes:
    """A mark that identifies the secret and reveals nothing of it: 256 random bits cannot be searched."""
    return hmac.digest(secret, b"mark of the secret", "sha256")
