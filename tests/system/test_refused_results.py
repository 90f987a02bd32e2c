"""A proxy between worker and master refuses large bodies for good, as `client_max_body_size` of nginx does."""

from pathlib import Path

import pytest

from cloudpar.errors import TaskLost
from support.books import close_books
from support.customer import Customer
from support.forwarders import limited_proxy
from support.master_process import TOKENS
from support.running_agent import RunningAgent
from support.task_functions import zeros
from support.waiting import HANG_S
from system.site import Site

SMALL, LARGE = 10, 30_000
"""Sizes of results, in bytes. A result of LARGE bytes still travels inside a publication."""
LIMIT_BYTES = 20_000
LONG_S = 0.3
"""A worker publishes the result before this task while the task runs, and closes the lease after the task."""


@pytest.mark.parametrize("chunksize", [1, 2], ids=["the lease ends with it", "a later publication closes the lease"])
def test_a_map_ends_and_names_the_task_whose_result_a_proxy_refuses_for_good(tmp_path: Path, chunksize: int) -> None:
    jobs = [(LARGE, 0.0), (SMALL, LONG_S)]
    with Site(tmp_path / "site", lease_s=0.6) as site, limited_proxy(site.endpoint, LIMIT_BYTES) as address:
        customer = Customer(site, "ann")
        agent = RunningAgent(address, token=TOKENS["worker_token"], executors=1).wait_until_ready()
        try:
            with customer.pool() as pool:
                results = pool.map(zeros, jobs, chunksize=chunksize, return_exceptions=True, timeout=HANG_S)
                assert results.package_id is not None
                lost, small = results
                books = close_books(site, customer.token, results.package_id)
        finally:
            agent.close()
    assert isinstance(lost, TaskLost)
    assert "a proxy refuses its result (see the worker's log)" in str(lost)
    assert small == bytes(SMALL)
    assert books.last.state == "error"
    assert "the master refused results of package" in agent.log
