"""On AWS, too, tasks stop when the quota is exhausted."""

import pytest

from cloudpar.errors import PackageFailed, QuotaExhausted, TaskQuotaExceeded
from support.books import connected, statuses
from support.command import cloudpar_json
from support.customer import Customer
from support.task_functions import ten_milliseconds
from system.test_quota import GRANTED_US

from .deployment import Deployment
from .memory import refused_soon


def test_a_package_that_crosses_the_quota(cluster: Deployment) -> None:
    customer = Customer(cluster, "crosses", quota="300ms")
    with customer.pool() as pool:
        results = pool.map(ten_milliseconds, range(1_000))
        with pytest.raises((PackageFailed, TaskQuotaExceeded), match=r"compute time|quota"):
            list(results)
        assert results.package_id is not None
        with connected(cluster, customer.token) as wire:
            last = next(statuses(wire, results.package_id))
        assert (last.state, last.reason) == ("failed", "quota")
        account = customer.account()
        assert account.spent_us + account.reserved_us == account.granted_us == GRANTED_US
        refused_soon(lambda: pool.map(ten_milliseconds, [1]), QuotaExhausted, "cloudpar account grant")
        cloudpar_json("account", "grant", customer.account_id, "1h", *cluster.admin())
        assert list(pool.map(ten_milliseconds, range(10))) == list(range(10))
