"""Bad calls with real processes: each gives a clear error, and none hangs.

test_placement.py has packages that no connected worker can run. Tests that need no master are beside the tested code:
endless iterables and data over the limit in sdk/serialization/test_packing.py, endpoints that do not answer in
sdk/client/test_connection.py, ports in use in cli/test_up.py.
"""

import threading
from pathlib import Path

import pytest

from cloudpar import Pool
from cloudpar.errors import InvalidToken, PackageFailed, SerializationError
from support.command import cloudpar_json
from support.customer import Customer
from support.task_functions import mark_and_wait
from support.up import Up
from support.waiting import await_file


def test_an_unknown_token_is_refused(cluster: Up) -> None:
    with pytest.raises(InvalidToken, match="token"):
        Pool(cluster.endpoint, "unknown")


def test_a_revoked_token_between_two_calls(cluster: Up) -> None:
    customer = Customer(cluster, "revoked")
    with customer.pool() as pool:
        assert list(pool.map(abs, [-1, -2])) == [1, 2]
        cloudpar_json("account", "revoke", customer.account_id, *cluster.admin())
        with pytest.raises(InvalidToken, match="revoked"):
            pool.map(abs, [-1])
        with pytest.raises(InvalidToken, match="revoked"):
            pool.submit(abs, -1).result()
    with pytest.raises(InvalidToken, match="revoked"):
        customer.pool()


def test_revoking_a_token_ends_its_running_package(cluster: Up, tmp_path: Path) -> None:
    customer, running, gate = Customer(cluster, "caught"), tmp_path / "running", tmp_path / "gate"
    with customer.pool() as pool:
        results = pool.map(mark_and_wait, [(str(running), str(gate))])
        await_file(running)
        cloudpar_json("account", "revoke", customer.account_id, *cluster.admin())
        with pytest.raises((InvalidToken, PackageFailed), match="revoked"):
            next(results)
    with cluster.pool() as pool:  # the executor that it held is free again
        assert list(pool.map(abs, [-1, -2])) == [1, 2]


def test_an_unpicklable_function_argument_or_value(cluster: Up) -> None:
    lock = threading.Lock()
    with cluster.pool() as pool:
        with pytest.raises(SerializationError, match="lock"):
            pool.map(lambda _: lock, [1])
        with pytest.raises(SerializationError, match="lock"):
            pool.map(id, [lock])
        results = pool.map(lambda x: threading.Lock() if x else x, [0, 1, 0])
        assert next(results) == 0
        with pytest.raises(SerializationError, match="lock"):
            next(results)
        assert next(results) == 0
