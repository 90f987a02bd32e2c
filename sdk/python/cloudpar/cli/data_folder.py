"""The folder in which `cloudpar up` keeps all data, and the connection file that its master writes there."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cloudpar.errors import CloudparError, ConfigurationError


class ConnectionFile(msgspec.Struct, frozen=True):
    """The endpoint of a data folder's master, and the tokens of its default account, its workers and its operator."""

    endpoint: str
    token: str
    worker_token: str
    admin_token: str


def default_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which `cloudpar up` keeps its data by default."""
    base = environment.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "cloudpar"


def check_writable(folder: Path) -> None:
    """Check that a master can keep its data in a folder. The master creates the folder later.

    Raises:
        CloudparError: The folder is not writable. If the folder does not exist, the nearest existing folder above it is
            checked instead.
    """
    try:
        there = next(each for each in (folder, *folder.parents) if each.exists())
        # Writing a file is the only reliable check: a file system may refuse what the folder's mode allows.
        Path(tempfile.mkdtemp(prefix=".cloudpar-", dir=there)).rmdir()
    except OSError as error:
        raise CloudparError(
            f"the data folder {folder} cannot be made or written ({error.strerror}): name one by --data where you may "
            "write"
        ) from None


def connection_path(folder: Path) -> Path:
    """Return the path of the file to which the master of a data folder writes its endpoint and tokens."""
    return folder / "connection.json"


def is_data_folder(folder: Path) -> bool:
    """Return whether a master has used this folder."""
    return connection_path(folder).exists()


def read_connection(folder: Path) -> ConnectionFile:
    """Read the connection file of a data folder.

    Raises:
        ConfigurationError: The file does not exist, cannot be read, or is malformed.
    """
    path = connection_path(folder)
    try:
        return msgspec.json.decode(path.read_bytes(), type=ConnectionFile)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no {path}: start a master with `cloudpar up --data {folder}`, or say which one is meant by "
            "--endpoint and the token"
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None
    except msgspec.DecodeError:
        raise ConfigurationError(
            f"{path} is not what a master wrote: restore it, or delete it and start the master again, which makes new "
            "tokens"
        ) from None
