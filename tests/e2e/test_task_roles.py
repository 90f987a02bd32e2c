"""A task reads its owner's bucket with the credentials of its account's role, which the deployment assumes."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.command import cloudpar_json
from support.customer import Customer
from support.open_folder import open_folder
from support.task_functions import read_bucket
from worker.isolation.shared import MODES, imports_for, python_for_all

from .agents import Worker
from .deployment import Deployment
from .stand_in import ACCOUNT


@pytest.fixture
def shared(cluster: Deployment, tmp_path: Path) -> Iterator[Worker]:
    """A worker that may have credentials, beside the two whose executors have no users of their own."""
    with open_folder() as folder:
        python = python_for_all(folder / "python")
        with Worker(cluster, tmp_path / "log", "shared", python, **imports_for(python)) as worker:
            yield worker


@contextmanager
def meeting(people: int) -> Iterator[tuple[str, int]]:
    """An address where this many tasks wait for each other."""

    def meet() -> None:
        with ExitStack() as held:
            for _ in range(people):
                held.enter_context(server.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=meet, daemon=True).start()
        yield server.getsockname()


@pytest.mark.skipif("own-users" not in MODES, reason="only root gives executors users")
def test_a_task_reads_its_owners_bucket(cluster: Deployment, shared: Worker) -> None:
    """Only the shared worker gets credentials. Each of the three executors runs one of the tasks."""
    customer, client = Customer(cluster, "ada"), cluster.aws.client
    client("s3").create_bucket(Bucket="data-of-ada")
    client("s3").put_object(Bucket="data-of-ada", Key="x", Body=b"of ada")
    arn = f"arn:aws:iam::{ACCOUNT}:role/cloudpar/ada"
    given = cloudpar_json("account", "set-role", "ada", arn, *cluster.admin())
    trust = json.dumps(given["trust_policy"])
    client("iam").create_role(Path="/cloudpar/", RoleName="ada", AssumeRolePolicyDocument=trust)
    with customer.pool() as pool, meeting(3) as place:
        found = sorted(pool.map(read_bucket, [(place, cluster.aws.url)] * 3))
    assert [content for _, content in found] == [b"", b"", b"of ada"]
    assert found[-1][0].startswith("ASIA"), "a temporary access key"
