"""Guarantee 18: only the tasks of an account get the credentials of its IAM role."""

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cloudpar_protocol.worker_messages import Lease, TaskCredentials
from support.leases import inline, lease_of
from worker.isolation.shared import MODES, Shared
from worker.tasks import value_of

Clues = dict[str, Any]
OWN_USERS = pytest.mark.skipif("own-users" not in MODES, reason="only root gives users")
SECRET = "the-accounts-secret-key"


def credentials(package_id: str, session: str = "first", valid_s: float = 3600.0) -> TaskCredentials:
    return TaskCredentials(
        package_id=package_id, access_key_id="ASIAEXAMPLE", secret_access_key=SECRET, session_token=session,
        expires_at=time.time() + valid_s, region="eu-central-1",
    )  # fmt: skip


def leased(shared: Shared, function: Callable[..., Any], account: str, valid_s: float = 3600.0) -> Lease:
    """Hand out a task with credentials."""
    package_id = f"package-of-{account}-{function.__name__}"
    lease = lease_of(
        function, 1, account=account, package_id=package_id, data=inline([shared.clues]),
        credentials=credentials(package_id, valid_s=valid_s),
    )  # fmt: skip
    shared.master.hand_out(lease)
    return lease


def run(shared: Shared, function: Callable[..., Any], account: str) -> Any:
    lease = leased(shared, function, account)
    (result,) = shared.master.wait_for_results(1, lease.package_id).values()
    return value_of(result)


def by_library(_: Clues) -> list[Any]:
    """What AWS's library for Python finds here."""
    import botocore.session

    session = botocore.session.get_session()
    found = session.get_credentials()
    if found is None:
        return []
    frozen = found.get_frozen_credentials()
    return [frozen.access_key, frozen.secret_key, frozen.token, session.get_config_variable("region")]


def by_a_program(_: Clues) -> Any:
    """What a program finds that reads the configuration file as AWS documents it."""
    config = Path(os.environ["AWS_CONFIG_FILE"]).read_text()
    command = config.partition("credential_process = ")[2].splitlines()[0]
    return json.loads(subprocess.run(command.split(), capture_output=True, check=True).stdout)


@pytest.fixture(scope="module")
def shared(start: Callable[..., Shared]) -> Shared:
    return start("own-users")


@OWN_USERS
def test_g18_tasks_find_the_credentials_of_their_account(shared: Shared) -> None:
    assert run(shared, by_library, "ann") == ["ASIAEXAMPLE", SECRET, "first", "eu-central-1"]
    assert run(shared, by_a_program, "ann")["SecretAccessKey"] == SECRET
    assert all(request.credentials for _, route, request in shared.master.requests if route == "retrieve_tasks")


def environment(_: Clues) -> list[str]:
    return [name for name in os.environ if name.startswith("AWS_")]


def places(clues: Clues) -> Iterator[Path]:
    """Where a process may keep a secret: its descriptors, its environment, its memory in files, and its files."""
    yield from Path("/proc").glob("[0-9]*/environ")
    yield from Path("/proc").glob("[0-9]*/fd/*")
    for folder in (clues["tmp"], "/dev/shm", "/var/tmp"):
        yield from Path(folder).rglob("*")


def look_around(clues: Clues) -> list[str]:
    """The places in which this task can read the credentials of account ann."""
    seen = []
    for place in places(clues):
        with suppress(OSError):
            if place.is_file() and b"the-accounts-" + b"secret-key" in place.read_bytes():
                seen.append(str(place))
    return seen


def hold(clues: Clues) -> list[str]:
    """Look around as well, and then hold the credentials until the test ends the connection."""
    seen = look_around(clues)
    with socket.create_connection(clues["held"]) as line:
        line.recv(1)
    return seen


@OWN_USERS
def test_g18_tasks_of_another_account_find_no_credentials(shared: Shared) -> None:
    """They run on the same worker, after a task with credentials and beside one. That one finds its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        shared.clues |= {"held": server.getsockname()}
        holder = leased(shared, hold, "ann")
        line, _ = server.accept()
        with line:
            assert value_of(shared.run(by_library, account="bob")) == []
            assert value_of(shared.run(environment, account="bob")) == []
            assert value_of(shared.run(look_around, account="bob")) == []
    (result,) = shared.master.wait_for_results(1, holder.package_id).values()
    assert [place for place in value_of(result) if "/fd/" in place]


def changed(_: Clues) -> str:
    """The session token once it is another one than at the start."""

    def token() -> str:
        return str(by_a_program({})["SessionToken"])

    first = token()
    while (now := token()) == first:
        time.sleep(0.05)
    return now


@OWN_USERS
def test_g18_a_beat_renews_the_credentials_of_a_task_that_runs(start: Callable[..., Shared]) -> None:
    shared = start("own-users", executors=1)
    name = f"package-of-ann-{changed.__name__}"
    shared.master.set(credentials=[credentials(name, "renewed")])
    lease = leased(shared, changed, "ann", valid_s=60.0)
    (result,) = shared.master.wait_for_results(1, lease.package_id).values()
    assert value_of(result) == "renewed"


def test_g18_a_worker_whose_executors_share_a_user_takes_no_credentials(start: Callable[..., Shared]) -> None:
    """Tasks of other accounts could read them. A master that sends them nevertheless changes nothing."""
    shared = start("one-user", executors=1)
    assert run(shared, environment, "ann") == []
    assert not any(request.credentials for _, route, request in shared.master.requests if route == "retrieve_tasks")
