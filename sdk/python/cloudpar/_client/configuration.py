"""Finds the master's address and the account's token in arguments, the environment, a task's pool or a profile file."""

import difflib
import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cloudpar.errors import ConfigurationError
from cloudpar_protocol import nesting

PROFILE_KEYS = "endpoint", "token"

LOCAL = "local"
"""This text as endpoint means a pool on this machine, even if a source of lower priority names a master."""


@dataclass(frozen=True)
class Configuration:
    """The address of a running master, and a token. `source` says where the address was found, for messages."""

    endpoint: str
    token: str
    source: str


def configure(
    endpoint: str | None,
    token: str | None,
    environment: Mapping[str, str] = os.environ,
    *,
    of_task: Configuration | None = None,
) -> Configuration | None:
    """Return the master to connect to; None if no source names a master, or if the first endpoint found is "local".

    Args:
        endpoint: The endpoint from the program; if it is None, the environment may give an endpoint.
        token: The token from the program; if it is None, the environment may give a token.
        environment: The environment variables.
        of_task: The pool that runs this task; None if there is no such pool. If the program and the environment give
            neither an endpoint nor a token, this pool is used instead of the profile file. On this machine a task reads
            the same profile file as the program, and the file could name another master.

    Raises:
        ConfigurationError: Only one of endpoint and token was found, or the endpoint is neither a URL nor "local". Or
            the profile file cannot be read, or has an unknown key or a value that is not a string. Or CLOUDPAR_PROFILE
            does not name an existing file.
    """
    sources = [
        (endpoint, token, "the arguments endpoint= and token="),
        (
            environment.get("CLOUDPAR_ENDPOINT") or None,
            environment.get("CLOUDPAR_TOKEN") or None,
            "the environment variables CLOUDPAR_ENDPOINT and CLOUDPAR_TOKEN",
        ),
    ]
    if not any(sources[0][:2]) and not any(sources[1][:2]):
        if of_task is not None:
            return of_task
        sources.append(_profile(environment))
    return _merge(sources)


def of_the_task() -> Configuration | None:
    """Return how a task connects to the pool that runs it; None if that pool did not start the task's worker.

    The result is also None outside of tasks, and in processes that a task has forked.
    """
    executor = nesting.here()
    pool = executor.pool if executor is not None else None
    return None if pool is None else Configuration(pool.endpoint, pool.token, "the pool that runs this task")


def _merge(sources: list[tuple[str | None, str | None, str]]) -> Configuration | None:
    """Take the endpoint from the first source that has one, and the token from the first source that has one.

    So a program can name the endpoint in its source code, while the token is in the environment.
    """
    endpoint = next(((value, source) for value, _, source in sources if value), None)
    token = next(((value, source) for _, value, source in sources if value), None)
    if (endpoint is None and token is None) or (endpoint is not None and endpoint[0] == LOCAL):
        return None
    if endpoint is None or token is None:
        there, missing = ("a token", "endpoint") if endpoint is None else ("an endpoint", "token")
        known = token or endpoint
        source = known[1] if known else ""
        raise ConfigurationError(
            f"there is {there} (from {source}) but no {missing}: give both, by Pool(endpoint=..., token=...), by "
            'CLOUDPAR_ENDPOINT and CLOUDPAR_TOKEN, or in the profile file; or neither, or the endpoint "local", for a '
            "pool on this machine"
        )
    url = endpoint[0].rstrip("/")
    if not url.startswith(("http://", "https://")):
        raise ConfigurationError(
            f"the endpoint {endpoint[0]!r} (from {endpoint[1]}) is not a URL: an endpoint must start with http:// or "
            'https://, as in http://127.0.0.1:8000, or be "local", for a pool on this machine'
        )
    return Configuration(url, token[0], endpoint[1])


def _profile(environment: Mapping[str, str]) -> tuple[str | None, str | None, str]:
    path = profile_path(environment)
    source = f"the profile file {path}"
    try:
        if not _is_file(path):
            if environment.get("CLOUDPAR_PROFILE"):
                raise ConfigurationError(f"CLOUDPAR_PROFILE names {path}, which is no file: correct it, or unset it")
            return None, None, source
        import tomllib

        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # a ValueError: the file is not UTF-8, or not TOML
        raise ConfigurationError(
            f'{source} cannot be read: {error}; it has two lines, endpoint = "..." and token = "..."'
        ) from None
    _check_keys(values, source)
    found = []
    for key in PROFILE_KEYS:
        value = values.get(key)
        if value is not None and not isinstance(value, str):
            raise ConfigurationError(f'{key} in {source} is no string: write {key} = "..."')
        found.append(value or None)
    return found[0], found[1], source


def _is_file(path: Path) -> bool:
    """Whether the path is a file.

    If this process may not enter the path's folder, this function raises a PermissionError in every release of Python.
    In some releases `Path.is_file` returns False instead.
    """
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False


def _check_keys(values: Iterable[str], source: str) -> None:
    """Refuse unknown keys. Otherwise a file with two misspelled keys would count as empty, without an error."""
    for key in values:
        if key not in PROFILE_KEYS:
            similar = difflib.get_close_matches(key.lower(), PROFILE_KEYS, n=1)
            meant = f"did you mean {similar[0]}?" if similar else "remove it"
            raise ConfigurationError(
                f"{source} has the key {key!r}, and only endpoint and token mean something: {meant}"
            )


def profile_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the profile file's path: CLOUDPAR_PROFILE, or cloudpar/profile.toml in the user's configuration folder."""
    named = environment.get("CLOUDPAR_PROFILE")
    if named:
        return Path(named).expanduser()
    folder = environment.get("XDG_CONFIG_HOME")
    return (Path(folder) if folder else Path.home() / ".config") / "cloudpar" / "profile.toml"
