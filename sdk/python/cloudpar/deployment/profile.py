"""The profile file, in which `cloudpar.configuration` finds endpoint and token."""

import glob
import json
import os
import tomllib
from itertools import count
from pathlib import Path
from typing import NamedTuple

from cloudpar.configuration import profile_path


class Profile(NamedTuple):
    """What a profile file says."""

    endpoint: str
    token: str


def read() -> Profile | None:
    """The profile file that there is now, if it is one."""
    return _read(profile_path())


def _read(path: Path) -> Profile | None:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    endpoint, token = found.get("endpoint"), found.get("token")
    return Profile(endpoint.rstrip("/"), token) if isinstance(endpoint, str) and isinstance(token, str) else None


def write(profile: Profile) -> Path:
    """Write it, readable by its owner alone. What it held is kept beside it: profile.toml.old, .old2 and so on."""
    path = profile_path()
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
    """Where nothing is yet: what is kept holds a token that nobody can look up."""
    names = (path.with_name(f"{path.name}.old{'' if number == 1 else number}") for number in count(1))
    return next(each for each in names if not each.exists())


def kept(endpoint: str) -> Path | None:
    """Where `write` kept a profile of that endpoint; of several the newest."""
    path = profile_path()
    beside = path.parent.glob(f"{glob.escape(path.name)}.old*")
    found = [(each, _read(each)) for each in beside]
    named = [each for each, profile in found if profile is not None and profile.endpoint == endpoint.rstrip("/")]
    return max(named, key=lambda each: each.stat().st_mtime, default=None)


def take_back(spare: Path) -> Path:
    """Have what was kept be the profile file again; what that holds is kept in its turn."""
    path = profile_path()
    if path.exists():
        path.replace(_spare(path))
    return spare.replace(path)


def forget(endpoint: str) -> Path | None:
    """Delete it if it names that endpoint; returns what was deleted."""
    there = read()
    if there is None or there.endpoint != endpoint.rstrip("/"):
        return None
    path = profile_path()
    path.unlink(missing_ok=True)
    return path
