"""An operator keeps the tasks of an account from the network, with a real master and a real worker."""

import socket
from collections.abc import Iterator

import pytest

from cloudpar import Pool
from support.command import cloudpar_json
from support.open_folder import open_folder
from support.running_agent import RunningAgent
from support.up import Up, worker
from system.reaching import connect
from worker.isolation.shared import imports_for, python_for_all


@pytest.fixture
def up() -> Iterator[Up]:
    """A master whose worker may be shared."""
    with open_folder() as folder, Up(folder / "data", 0) as up:
        yield up


@pytest.fixture
def shared(up: Up) -> Iterator[None]:
    folder = up.folder.parent
    python = python_for_all(folder / "python")
    agent = RunningAgent(
        up.endpoint, token=up.connection["worker_token"], executors=1, isolation="shared", python=python,
        tmp=str(folder / "tmp"), environment=imports_for(python),
    )  # fmt: skip
    try:
        agent.wait_until_ready()
        yield
    finally:
        agent.close()


@pytest.mark.usefixtures("shared")
def test_an_operator_takes_the_network_from_an_account_and_gives_it_back(up: Up) -> None:
    made = cloudpar_json("account", "create", "ann", "--quota", "1h", "--network", "none", *up.admin())
    with socket.create_server(("127.0.0.1", 0)) as service, Pool(up.endpoint, made["token"], progress=False) as pool:
        place = service.getsockname()
        with pytest.raises(PermissionError) as refused:
            pool.submit(connect, place).result()
        assert "cloudpar account set --network none" in "".join(refused.value.__notes__)
        cloudpar_json("account", "set", "ann", "--network", "outbound", *up.admin())
        assert pool.submit(connect, place).result() == "connected"
        cloudpar_json("account", "set", "ann", "--network", "none", *up.admin())
        with pytest.raises(PermissionError):
            pool.submit(connect, place).result()


def test_a_worker_that_confines_nothing_runs_only_tasks_that_may_use_the_network(up: Up) -> None:
    made = cloudpar_json("account", "create", "ann", "--quota", "1h", "--network", "none", *up.admin())
    with worker(up), Pool(up.endpoint, made["token"], progress=False) as ann, up.pool() as other:
        waiting = ann.submit(abs, -1)
        assert other.submit(abs, -2).result() == 2
        assert not waiting.done()
        cloudpar_json("account", "set", "ann", "--network", "outbound", *up.admin())
        assert waiting.result() == 1
