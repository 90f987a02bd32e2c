"""Bad calls with real processes: each gives a clear error, and none hangs.

Tests that need no master are beside the tested code: endless iterables and data over the limit in
sdk/serialization/test_packing.py, endpoints that do not answer in sdk/client/test_connection.py, ports in use in
cli/test_up.py.
"""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from cli.operation import Up, cloudpar_json
from cloudpar import Pool
from cloudpar._client import session
from cloudpar._serialization import packing
from cloudpar.errors import InvalidToken, PackageFailed, PythonMismatch, SerializationError, TooLarge
from cloudpar_protocol import limits, routes
from cloudpar_protocol.client_messages import PrepareUploads, Upload
from system.books import Customer, connected
from system.work import await_file, mark_and_wait


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


def test_a_token_that_is_revoked_while_its_package_runs(cluster: Up, tmp_path: Path) -> None:
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


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Start a master that does not wait for a suitable worker; master/services/placement tests the wait."""
    with Up(tmp_path_factory.mktemp("data"), workers=2, more=["--set", "grace_s=0.1"]) as up:
        yield up


@pytest.mark.parametrize("python", ["3.9", "3.99"])
def test_a_client_of_another_python_gets_a_clear_error(
    impatient: Up, python: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(session, "PYTHON", python)
    ours = f"{sys.version_info.major}.{sys.version_info.minor}"
    with impatient.pool() as pool:
        for wrong in (lambda: pool.submit((tmp_path / "ran").touch).result(), lambda: list(pool.map(abs, range(1000)))):
            with pytest.raises(PythonMismatch) as caught:
                wrong()
            assert f"Python {python}" in str(caught.value)
            assert f"use Python {ours}" in str(caught.value)
    assert not (tmp_path / "ran").exists()


def test_a_module_that_the_worker_has_not(cluster: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("only_at_the_client")
    exec("def double(x):\n    return 2 * x\n", vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(module, "__file__", str(Path(pytest.__file__)), raising=False)  # as if it were installed
    with cluster.pool() as pool:
        with pytest.raises(ModuleNotFoundError, match="only_at_the_client") as caught:
            list(pool.map(module.double, [1, 2]))
        assert any("Install 'only_at_the_client' at the worker" in note for note in caught.value.__notes__)


def test_an_endless_iterable_is_refused(cluster: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PACKAGE_TASKS", 10_000)
    endless = iter(int, 1)
    with cluster.pool() as pool:
        with pytest.raises(TooLarge, match="buffersize="):
            pool.map(abs, endless)
        with pytest.raises(TooLarge, match="buffersize="):
            pool.map(abs, range(10_001))


def test_data_over_the_limit_of_a_package(cluster: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "BLOB_BYTES", 10_000_000)
    with cluster.pool() as pool, pytest.raises(TooLarge, match=r"10,000,000.*buffersize="):
        pool.map(len, [bytes(1_000_000)] * 20)


def test_the_master_refuses_too_much_data_too(cluster: Up) -> None:
    with connected(cluster, cluster.connection["token"]) as wire, pytest.raises(TooLarge, match="1,073,741,824"):
        wire.call(
            routes.PREPARE_UPLOADS, PrepareUploads(uploads=[Upload(kind="data", size=limits.BLOB_BYTES + 1, crc32=0)])
        )
