"""Golden byte vectors: the bytes of every message, for tests of later releases and other languages.

    python -m cloudpar_protocol_tools.vectors

writes vectors/v<release>.json next to this package. It never overwrites a file. The tests read the file of every
release, and check that the current version still understands these messages.
"""

import sys
from pathlib import Path

import msgspec

from cloudpar_protocol import codec
from cloudpar_protocol.limits import PROTOCOL_VERSION
from cloudpar_protocol.version import __version__

from .samples import message_types, samples

FOLDER = Path(__file__).parents[1] / "vectors"


class Vector(msgspec.Struct, frozen=True):
    """One message: its type, its JSON text, and its MessagePack bytes in hexadecimal digits."""

    name: str
    type: str
    json: str
    msgpack: str


class VectorFile(msgspec.Struct, frozen=True):
    """All vectors of one release."""

    release: str
    protocol: int
    vectors: list[Vector]


def make() -> VectorFile:
    """Make the vectors of the current messages."""
    vectors = [
        Vector(
            name=f"{name} {number}",
            type=name,
            json=codec.encode(message, codec.JSON).decode(),
            msgpack=codec.encode(message).hex(),
        )
        for name, kind in message_types().items()
        for number, message in enumerate(samples(kind))
    ]
    return VectorFile(release=__version__, protocol=PROTOCOL_VERSION, vectors=vectors)


def read(path: Path) -> VectorFile:
    """Read a release's vectors."""
    return msgspec.json.decode(path.read_bytes(), type=VectorFile)


def write(folder: Path = FOLDER) -> Path:
    """Write this release's vectors.

    Raises:
        FileExistsError: The file exists already.
    """
    path = folder / f"v{__version__}.json"
    text = msgspec.json.format(msgspec.json.encode(make()), indent=1) + b"\n"
    folder.mkdir(exist_ok=True)
    with path.open("xb") as file:
        file.write(text)
    return path


def main() -> int:
    """Write the file. If the file exists already, print an error and return 1."""
    try:
        path = write()
    except FileExistsError as error:
        sys.stderr.write(
            f"{error.filename} exists, and a released version's vectors never change: raise version.py first; "
            "only while this version is not released, delete the file and run this again.\n"
        )
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
