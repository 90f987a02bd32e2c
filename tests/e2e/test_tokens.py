"""Wrong and revoked tokens."""

from pathlib import Path

import pytest

from cloudpar.errors import InvalidToken, PackageFailed
from support.command import cloudpar, cloudpar_json
from support.customer import Customer
from support.gates import opening
from support.task_functions import mark_and_wait
from support.waiting import await_file

from .deployment import Deployment
from .memory import refused_soon


def test_an_unknown_token_is_refused(cluster: Deployment) -> None:
    with pytest.raises(InvalidToken, match="token"):
        cluster.pool("unknown")


def test_the_worker_token_is_refused_for_users(cluster: Deployment) -> None:
    refused = cloudpar("packages", "list", "--endpoint", cluster.endpoint, "--token", cluster.worker_token)
    assert refused.returncode != 0
    assert "token" in refused.stderr


def test_revoking_a_token_ends_its_running_package(cluster: Deployment, tmp_path: Path) -> None:
    customer, running = Customer(cluster, "caught"), tmp_path / "running"
    with customer.pool() as pool, opening(tmp_path / "gate") as gate:
        results = pool.map(mark_and_wait, [(str(running), str(gate))])
        await_file(running)
        cloudpar_json("account", "revoke", customer.account_id, *cluster.admin())
        with pytest.raises((InvalidToken, PackageFailed), match="revoked"):
            next(results)
        refused_soon(lambda: pool.map(abs, [-1]), InvalidToken, "revoked")
    refused_soon(customer.pool, InvalidToken, "revoked")
    with Customer(cluster, "after").pool() as pool:  # the executor that it held is free again
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
