"""The last steps of a deployment: the operator's own account, and a first map."""

import getpass
import http.client
import time
from collections.abc import Mapping
from pathlib import Path

import click

from cloudpar._client.configuration import profile_path
from cloudpar.deployment import profile, stack
from cloudpar.deployment.administration import Administration
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.failures import DeploymentError
from cloudpar.deployment.profile import Profile
from cloudpar_protocol import routes
from cloudpar_protocol.errors import CloudparError

from .account import new_account
from .clock_check import date_of

FIRST_MAP_S = 900.0
"""How long the first map may take, in seconds. It starts the first worker, which takes one to three minutes."""

NUMBERS = 10


def ensure_account(aws: Aws, made: stack.Stack, name: str | None, hours: float, *, activate: bool) -> Path:
    """Create an account of this stack, unless the profile file or a file beside it has a token of this stack already.

    If the profile file names the endpoint of another stack, it stays as it is, so that programs continue to use that
    pool. With `activate`, the file with this stack's token replaces the profile file, and the old profile file is kept
    beside it.

    Returns:
        The file that holds the account's token: the profile file, or one beside it.
    """
    administration = Administration(aws, made)
    endpoint, active, path = administration.endpoint, profile.read(), profile_path()
    if active is not None and active.endpoint == endpoint:
        return path
    kept = profile.kept(endpoint)
    takes_place = active is None or activate
    if kept is not None:
        return profile.take_back(kept) if takes_place else kept
    request, token = new_account(name or _own_name(), round(hours * 3.6e9))
    administration.call(routes.CREATE_ACCOUNT, request)
    fresh = Profile(endpoint, token)
    return profile.write(fresh) if takes_place else profile.write_beside(fresh, made.name)


def _own_name() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # in a container the user may have no name
        return "first"


def reaches(endpoint: str, settings: Mapping[str, str]) -> bool:
    """Return whether this machine reaches a deployment's API.

    A public API is not tried, because the first map reports errors.
    """
    if "apiVpcEndpoint" not in settings:
        return True
    try:
        date_of(endpoint)
    except (OSError, http.client.HTTPException):
        return False
    return True


def first_map(path: Path, *, show: bool) -> float:
    """Square a few numbers on the new pool, and return the duration in seconds.

    With `show`, the pool shows how its workers start.

    Raises:
        DeploymentError: The file at `path` cannot be read, or a result did not arrive within FIRST_MAP_S.
        CloudparError: The pool cannot run the map, or its results are wrong.
    """
    from cloudpar.pool import Pool

    user = profile.read(path)
    if user is None:
        raise DeploymentError(f"{path} cannot be read any more: run `cloudpar deploy` again")
    click.echo("The first map; the first worker takes one to three minutes to start.", err=True)
    started_at = time.monotonic()
    with Pool(user.endpoint, user.token, progress=show) as pool:
        results = pool.map(pow, range(NUMBERS), [2] * NUMBERS, timeout=FIRST_MAP_S)
        try:
            squares = list(results)
        except TimeoutError:
            results.cancel()
            raise DeploymentError(
                f"the pool is deployed, but its first map has no result after {FIRST_MAP_S / 60:.0f} min: `cloudpar "
                "status` shows what AWS says about the workers"
            ) from None
    if squares != [number**2 for number in range(NUMBERS)]:
        raise CloudparError(
            f"the first map has wrong results, {squares}: this is a fault of cloudpar, please report it"
        )
    return round(time.monotonic() - started_at, 1)


def summary(made: stack.Stack, path: Path, took_s: float | None, environment: str) -> str:
    """Return a text that says how to use the pool."""
    mapped = "" if took_s is None else f"The first map took {took_s:.0f} s; the next finds its worker there.\n"
    active = profile_path()
    program = "  from cloudpar import Pool\n  with Pool() as pool:\n      print(sum(pool.map(abs, range(1000))))\n"
    if path == active:
        use = f"{path} has your token, so that this works:\n\n{program}"
    else:
        use = (
            f"{path} has your token. {active} stays as it is, so programs go on with the pool that it names. To use "
            f"{made.name} in one program:\n\n  export CLOUDPAR_PROFILE={path}\n\nor in all: cloudpar deploy --env "
            f"{environment} --activate\n"
        )
    return (
        f"{mapped}{made.name} is at {made.output('Endpoint')}; {use}\n"
        f"What it does and costs: cloudpar status --env {environment}; the end of it: cloudpar destroy --env "
        f"{environment}"
    )
