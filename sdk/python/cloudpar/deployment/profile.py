"""Reads and writes the profile file, from which pools take their endpoint and token."""

import glob
import json
import os
import tomllib
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cloudpar._client.configuration import profile_path


class Profile(NamedTuple):
    """The content of a profile file."""

    endpoint: str
    token: str


def read(path: Path | None = None) -> Profile | None:
    """Read a profile file; None if it cannot be read, or lacks an endpoint or a token.

    Without a path, read the file that programs use.
    """
    path = path or profile_path()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    endpoint, token = found.get("endpoint"), found.get("token")
    return Profile(endpoint.rstrip("/"), token) if isinstance(endpoint, str) and isinstance(token, str) else None


def write_beside(profile: Profile, name: str) -> Path:
    """Write a file beside the profile file. Programs use the new file only if CLOUDPAR_PROFILE names it."""
    active = profile_path()
    return write(profile, active.with_name(f"{active.stem}-{name}{active.suffix}"))


def write(profile: Profile, path: Path | None = None) -> Path:
    """Write a profile file that only its owner can read. Without a path, write the file that programs use.

    The old file, if any, is kept as profile.toml.old, .old2 and so on.
    """
    path = path or profile_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            # A JSON string is a TOML string.
            file.write(f"endpoint = {json.dumps(profile.endpoint)}\ntoken = {json.dumps(profile.token)}\n")
        if path.exists():
            path.replace(_spare(path))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def _spare(path: Path) -> Path:
    """Return an unused path. No old file is overwritten, because its token may be kept nowhere else."""
    names = (path.with_name(f"{path.name}.old{'' if number == 1 else number}") for number in count(1))
    return next(each for each in names if not each.exists())


def kept(endpoint: str) -> Path | None:
    """Return the newest of the files beside the profile file that name this endpoint; None if there is no such file."""
    return max(_beside(endpoint), key=lambda each: each.stat().st_mtime, default=None)


def _beside(endpoint: str) -> list[Path]:
    active = profile_path()
    files = active.parent.glob(f"{glob.escape(active.stem)}*{glob.escape(active.suffix)}*")
    found = [(each, read(each)) for each in files if each != active]
    return [each for each, profile in found if profile is not None and profile.endpoint == endpoint.rstrip("/")]


def take_back(spare: Path) -> Path:
    """Replace the profile file by a file beside it. The old profile file is kept, as `write` keeps it.

    A file that `write_beside` made is copied, since programs may name it by CLOUDPAR_PROFILE. Any other file is moved.
    """
    path = profile_path()
    said = read(spare)
    if spare.suffix == path.suffix and said is not None:
        return write(said)
    if path.exists():
        path.replace(_spare(path))
    return spare.replace(path)


def follow(before: str, endpoint: str) -> None:
    """Write the new address of a deployment into each profile file that names the address `before`."""
    active, there = profile_path(), read()
    files = _beside(before)
    if there is not None and there.endpoint == before.rstrip("/"):
        files.append(active)
    for path in files:
        said = read(path)
        if said is not None:
            write(said._replace(endpoint=endpoint.rstrip("/")), path)


def forget(endpoint: str) -> list[Path]:
    """Delete the profile file, and each file beside it, if it names this endpoint; return the deleted files."""
    active, there = profile_path(), read()
    named = _beside(endpoint)
    if there is not None and there.endpoint == endpoint.rstrip("/"):
        named.insert(0, active)
    for path in named:
        path.unlink(missing_ok=True)
    return named
