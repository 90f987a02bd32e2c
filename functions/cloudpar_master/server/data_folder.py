"""The folder that holds everything of an embedded master.

Its file connection.json has the master's endpoint and tokens, for the command line and for the next start.
"""

import fcntl
import os
import secrets
import stat
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from cloudpar_protocol.tokens import new_token

SECRET_BYTES = 32


class DataFolderError(Exception):
    """A data folder cannot be used; the text says why and what to do."""


class Connection(Struct, frozen=True, kw_only=True):
    """The content of connection.json: the master's endpoint, and a token for each of the three roles."""

    endpoint: str
    token: str
    worker_token: str
    admin_token: str


class DataFolder:
    """A data folder, locked for this process until `close` or until the process ends.

    Attributes:
        database: The file with heads, inboxes, results, accounts and the queue.
        blobs: The folder with payloads.
        audit: The file that records what operators do.
        secret_path: The file with the secret that signs links and encrypts accounts' keys.

    Raises:
        DataFolderError: The folder cannot be made or written, belongs to another user, or is locked by another master.
            Or it has files although other users may write to it, or its file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = path / "master.sqlite"
        self.blobs = path / "blobs"
        self.audit = path / "audit.jsonl"
        self.secret_path = path / "secret"
        self._connection_path = path / "connection.json"
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_owner(path)
            self._lock = (path / "lock").open("ab")
        except OSError as error:
            text = f"the data folder {path} cannot be used ({error.strerror or error}): choose another folder"
            raise DataFolderError(text) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            text = f"another master runs on the data folder {path}: end that one, or choose another folder"
            raise DataFolderError(text) from None
        except OSError as error:
            self.close()
            text = f"the data folder {path} cannot be locked ({error.strerror or error}): choose one on a local disk"
            raise DataFolderError(text) from None

    def close(self) -> None:
        """Unlock the folder for other processes. The end of this process unlocks it, too."""
        self._lock.close()

    def kept_secret(self) -> bytes | None:
        """Return the stored secret; None if the folder has no secret, or a damaged one (of a wrong size).

        Raises:
            OSError: The file cannot be read.
        """
        kept = self.secret_path.read_bytes() if self.secret_path.exists() else b""
        # A power cut may have left the file empty. If an empty secret counted, any caller could sign links.
        return kept if len(kept) == SECRET_BYTES else None

    def make_secret(self) -> bytes:
        """Store a new random secret, which replaces an earlier secret, and return it.

        Raises:
            DataFolderError: The file cannot be written.
        """
        fresh = secrets.token_bytes(SECRET_BYTES)
        _write_privately(self.secret_path, fresh)
        return fresh

    def connect(self, given: Connection) -> Connection:
        """Write connection.json with this endpoint, and return its content.

        If a token is empty, the file keeps its earlier token, or gets a new token if it has none.

        Raises:
            DataFolderError: The file exists and cannot be read, or is malformed; or new content cannot be written.
        """
        kept = self._kept()
        connection = replace(
            given,
            token=given.token or kept.token or new_token(),
            worker_token=given.worker_token or kept.worker_token or new_token(),
            admin_token=given.admin_token or kept.admin_token or new_token(),
        )
        try:
            _write_privately(self._connection_path, msgspec.json.encode(connection))
        except DataFolderError:
            # A master that was killed must be able to start again while its disk is full, to serve what is stored.
            if connection != kept:
                raise
        return connection

    def _kept(self) -> Connection:
        path = self._connection_path
        try:
            return msgspec.json.decode(path.read_bytes(), type=Connection)
        except FileNotFoundError:
            return Connection(endpoint="", token="", worker_token="", admin_token="")
        except OSError as error:
            raise DataFolderError(f"{path} cannot be read ({error.strerror}): let the master's user read it") from None
        except msgspec.DecodeError:
            text = f"{path} is not what a master wrote: restore it, or remove it, which makes new tokens"
            raise DataFolderError(text) from None


def _check_owner(path: Path) -> None:
    """Refuse a folder to which other users may write: they could give this master tokens that they know.

    If the folder is empty and belongs to this user, take the right to write from all other users instead.

    Raises:
        DataFolderError: The folder belongs to another user, or has files although its mode lets others write.
        OSError: The folder cannot be read, or its mode cannot be changed.
    """
    found, user = path.stat(), os.geteuid()
    if found.st_uid != user:
        raise DataFolderError(
            f"the data folder {path} belongs to user {found.st_uid}, and the master runs as user {user}: another user "
            f"could plant tokens there. Choose another folder, or give this one to the master: chown -R {user} {path}"
        )
    mode, others = stat.S_IMODE(found.st_mode), stat.S_IWGRP | stat.S_IWOTH
    if mode & others:
        path.chmod(mode & ~others)  # from now on no other user can add a file
        if any(path.iterdir()):
            path.chmod(mode)
            raise DataFolderError(
                f"other users may write to the data folder {path}, and could plant tokens there: choose another "
                f"folder, or, if all that it contains is yours, chmod go-w {path}"
            )


def _write_privately(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read. It replaces an earlier file in one step.

    Raises:
        DataFolderError: The file cannot be written.
    """
    fresh = path.with_suffix(".new")
    try:
        fresh.unlink(missing_ok=True)  # a crash may have left it
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise DataFolderError(f"{path} cannot be written: {error.strerror or error}") from None
