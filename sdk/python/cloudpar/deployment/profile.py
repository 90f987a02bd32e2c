"""The profile file, in which `cloudpar.configuration` finds endpoint and token."""

import json
import os
import tomllib
from pathlib import Path
from typing import NamedTuple

from cloudpar.configuration import profile_path


class Profile(NamedTuple):
    """What a profile file says."""

    endpoint: str
    token: str


def read() -> Profile | None:
    """The profile file that there is now, if it is one."""
    try:
        found = tomllib.loads(profile_path().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    endpoint, token = found.get("endpoint"), found.get("token")
    return Profile(endpoint.rstrip("/"), token) if isinstance(endpoint, str) and isinstance(token, str) else None


def write(profile: Profile) -> Path:
    """Write it, readable by its owner alone. What it held is kept beside it, as profile.toml.old."""
    path = profile_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            # A JSON string is a TOML string.
            file.write(f"endpoint = {json.dumps(profile.endpoint)}\ntoken = {json.dumps(profile.token)}\n")
        if path.exists():
            path.replace(path.with_name(f"{path.name}.old"))
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return path


def forget(endpoint: str) -> Path | None:
    """Delete it if it names that endpoint; returns what was deleted."""
    there = read()
    if there is None or there.endpoint != endpoint.rstrip("/"):
        return None
    path = profile_path()
    path.unlink(missing_ok=True)
    return path
