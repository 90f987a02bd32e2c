"""What a running task has left ends together with the task: at the end of the quota, and after a revocation."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing

import psutil
import pytest

from support.books import close_books
from support.command import cloudpar_json
from support.customer import Customer
from support.open_folder import open_folder
from support.running_agent import RunningAgent
from support.up import Up
from support.waiting import HANG_S, until
from system.lingering import leave_a_daemon
from worker.isolation.shared import MODES, ONE_USER, imports_for, python_for_all


@pytest.fixture(params=MODES)
def up(request: pytest.FixtureRequest) -> Iterator[Up]:
    """A master with a shared worker, whose executors have users of their own, or one user together."""
    user = ONE_USER if request.param == "one-user" and os.geteuid() == 0 else None
    with open_folder() as folder, Up(folder / "data", 0) as up:
        python = python_for_all(folder / "python")
        agent = RunningAgent(
            up.endpoint, token=up.connection["worker_token"], executors=1, isolation="shared", python=python,
            tmp=str(folder / "tmp"), environment=imports_for(python), user=user,
        )  # fmt: skip
        with closing(agent):
            agent.wait_until_ready()
            yield up


def start(customer: Customer) -> tuple[str, list[int]]:
    """Start the task; return the id of its package, and the process ids of its daemon and its executor."""
    pids = []
    with socket.create_server(("127.0.0.1", 0)) as server, customer.pool() as pool:
        server.settimeout(HANG_S)
        results = pool.map(leave_a_daemon, [server.getsockname()])
        for _ in range(2):
            line, _ = server.accept()
            with line, line.makefile() as text:
                pids.append(int(text.read()))
        results.detach()
    assert results.package_id is not None
    return results.package_id, pids


def await_end(pids: list[int]) -> None:
    until(lambda: not any(map(psutil.pid_exists, pids)))


def test_the_end_of_the_quota_ends_the_running_task_and_what_it_has_left(up: Up) -> None:
    customer = Customer(up, "spends all", quota="5s")  # long enough for both reports on a busy machine
    package_id, pids = start(customer)
    await_end(pids)
    last = close_books(up, customer.token, package_id).last
    assert (last.state, last.reason) == ("failed", "quota")


def test_a_revocation_ends_the_running_task_and_what_it_has_left(up: Up) -> None:
    customer = Customer(up, "is revoked")
    _, pids = start(customer)
    assert all(map(psutil.pid_exists, pids))
    cloudpar_json("account", "revoke", customer.account_id, *up.admin())
    await_end(pids)
