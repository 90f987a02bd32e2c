"""Payloads use the address that calls use: a forwarded port, another host name, or a proxy with TLS and a prefix."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cloudpar import Pool
from cloudpar_protocol.errors import MasterUnreachable
from support.forwarders import forwarded_port, passed, reverse_proxy
from support.up import Up, worker
from support.waiting import HANG_S

LARGE, HUGE = 500_000, 100_000_000


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("data"), workers=0) as up:
        yield up


def move(endpoint: str, token: str, sizes: list[int]) -> None:
    """Send payloads to tasks and back, by a pool that uses this address."""
    values = [bytes([number]) * size for number, size in enumerate(sizes)]
    with Pool(endpoint, token, progress=False) as pool:
        assert list(pool.map(bytes.swapcase, values, timeout=HANG_S * 2)) == [value.swapcase() for value in values]


def test_client_and_worker_behind_forwarded_ports_move_payloads(master: Up) -> None:
    with forwarded_port(master.endpoint) as far, forwarded_port(master.endpoint) as near, worker(master, endpoint=far):
        move(near, master.connection["token"], [LARGE] * 4)
        move(near, master.connection["token"], [HUGE])
        for endpoint in (near, far):  # both directions
            assert passed(endpoint) > 2 * (4 * LARGE + HUGE)


def test_another_host_name_leads_payloads_by_that_name(master: Up) -> None:
    by_name = master.endpoint.replace("127.0.0.1", "localhost")
    with worker(master, endpoint=by_name):
        move(by_name, master.connection["token"], [LARGE])


def test_client_and_worker_behind_a_proxy_with_tls_and_a_prefix_move_payloads(
    master: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        endpoint, certificate = stack.enter_context(reverse_proxy(master.endpoint, tmp_path))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        stack.enter_context(worker(master, endpoint=endpoint))
        move(endpoint, master.connection["token"], [LARGE] * 4)
        assert passed(endpoint) > 2 * 2 * 4 * LARGE  # both directions, for the client and for the worker


def test_an_unreachable_master_is_named_by_the_address_of_the_client() -> None:
    with forwarded_port("http://127.0.0.1:1") as endpoint, pytest.raises(MasterUnreachable, match=endpoint):
        Pool(endpoint, "token", progress=False).submit(abs, 1).result()
