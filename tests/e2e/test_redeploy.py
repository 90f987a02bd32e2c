"""A deployment replaces every function while a package runs."""

import threading
from pathlib import Path

from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello
from support.books import close_books, connected
from support.customer import Customer
from support.gates import opening
from support.task_functions import NUMBERS, TASKS, factorize_before_gate, main_job

from .deployment import Deployment


def test_a_running_package_completes_while_functions_are_replaced(
    cluster: Deployment, bundle: Path, tmp_path: Path
) -> None:
    customer, over = Customer(cluster, "meanwhile"), threading.Event()
    statuses: list[str] = []

    def greet() -> None:
        with connected(cluster, customer.token) as wire:
            while not over.wait(0.05):
                # The stand-in ends calls that are under way when it replaces a function; the client repeats them.
                statuses.append(wire.call(routes.HELLO, Hello()).role)

    with customer.pool() as pool, opening(tmp_path / "gate") as gate:
        results = pool.map(factorize_before_gate, main_job(gate))
        found = [next(results)]
        caller = threading.Thread(target=greet)
        caller.start()
        try:
            cluster.deploy(cluster.other_bundle(bundle))
        finally:
            over.set()
            caller.join()
        assert "Cloudpar-dev" in cluster.log
        assert "no changes" not in cluster.log
        gate.touch()
        assert results.package_id is not None
        books = close_books(cluster, customer.token, results.package_id)
        found += results
    assert len(found) == len(NUMBERS)
    assert set(statuses) == {"user"}
    customer.assert_charged_once(books, TASKS)
