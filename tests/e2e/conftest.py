"""One deployment with two workers for all scenarios. `make e2e` runs them; `make test` does not."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from support.customer import Customer
from support.forwarders import reverse_proxy
from support.task_functions import mark_and_wait
from support.waiting import await_file

from .agents import Worker
from .deployment import STACK, Deployment
from .stand_in import StandIn

Stage = Callable[[str], AbstractContextManager[None]]


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """With -v, print one line with the seconds for each scenario."""
    if report.when == "call" and report.passed:
        return "passed", ".", f"{report.duration:6.1f} s"
    return None


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "last: runs after all others, so that effects that take minutes have time")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests with the marker to the end; the others keep their order."""
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


@pytest.fixture(scope="session")
def stage(request: pytest.FixtureRequest) -> Stage:
    """Print how long a part of the deployment took."""
    terminal = request.config.pluginmanager.get_plugin("terminalreporter")

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        if terminal is not None:
            terminal.ensure_newline()
            terminal.write_line(f"{name} {time.monotonic() - began:.1f} s")

    return timed


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory, stage: Stage) -> Iterator[StandIn]:
    """Start the stand-in. All processes that this one starts find it in their environment, and no real AWS."""
    folder = tmp_path_factory.mktemp("aws")
    with stage("stand-in starts"):
        stand_in = StandIn(folder)
    with stand_in, pytest.MonkeyPatch.context() as patch:
        for name, value in stand_in.environment.items():
            if name.startswith("AWS_") or name in {"HOME", "XDG_CONFIG_HOME", "NO_PROXY"}:
                patch.setenv(name, value)
        yield stand_in


@pytest.fixture(scope="session")
def bundle(deployed: tuple[Deployment, Path]) -> Path:
    """Return the code of the deployed functions."""
    return deployed[1]


@pytest.fixture(scope="session")
def https(aws: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a URL with TLS that leads to the stand-in. All processes that this one starts trust its certificate."""
    with (
        reverse_proxy(aws.url, tmp_path_factory.mktemp("tls")) as (url, certificate),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SSL_CERT_FILE", str(certificate))
        patch.setenv("NODE_EXTRA_CA_CERTS", str(certificate))
        yield url


@pytest.fixture(scope="session")
def deployed(
    aws: StandIn, https: str, tmp_path_factory: pytest.TempPathFactory, stage: Stage
) -> Iterator[tuple[Deployment, Path]]:
    """Deploy the stack, and destroy it after all scenarios."""
    deployment = Deployment(aws, tmp_path_factory.mktemp("deployment"), https)
    with stage("functions built"):
        bundle = deployment.bundle()
    with stage("account bootstrapped"):
        deployment.bootstrap()
    with stage("stack deployed"):
        deployment.deploy(bundle)
    yield deployment, bundle
    with stage("stack destroyed"):
        deployment.destroy()
    assert STACK not in deployment.stacks()


@pytest.fixture(scope="session")
def deployment(deployed: tuple[Deployment, Path]) -> Deployment:
    return deployed[0]


@pytest.fixture(scope="session")
def workers(deployment: Deployment, tmp_path_factory: pytest.TempPathFactory, stage: Stage) -> Iterator[list[Worker]]:
    """Start two workers."""
    folder = tmp_path_factory.mktemp("workers")
    with stage("agents started"):
        started = [Worker(deployment, folder / f"{number}.log") for number in range(2)]
    with started[0], started[1]:
        yield started


@pytest.fixture
def cluster(deployment: Deployment, workers: list[Worker]) -> Deployment:
    return deployment


@pytest.fixture(scope="session")
def cancelled(
    deployment: Deployment, workers: list[Worker], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Customer, str]:
    """Have an owner cancel a running package. Minutes later the master knows its compute time."""
    customer, folder = Customer(deployment, "cancels"), tmp_path_factory.mktemp("cancelled")
    with customer.pool() as pool:
        results = pool.map(mark_and_wait, [(str(folder / "running"), str(folder / "gate"))] * 50)
        assert results.package_id is not None
        await_file(folder / "running")
        results.cancel()
    return customer, results.package_id
