"""infra/lib/contract.json, which the stack is built from, agrees with the adapters and functions.

Every test of the adapters checks the names of keys and indexes, since their tables are built from it, too.
"""

import os
from typing import Any

import msgspec

from aws import engines
from aws.stores import CONTRACT, clients
from cloudpar.deployment.stack import PREFIX
from cloudpar_handlers.request_log import RequestLog
from cloudpar_master.adapters.aws.backend import POLICY, from_environment, read_policy
from cloudpar_master.adapters.aws.blob_store import FRESH_S
from cloudpar_master.adapters.aws.package_store import DAY_S
from cloudpar_master.core.events import Acknowledged
from cloudpar_master.core.policy import Policy
from cloudpar_master.ports import LARGEST_RECEIVES
from cloudpar_protocol import routes
from support.stores import Stores

from . import states
from .conftest import Start


class Asked(dict[str, str]):
    """An empty environment that records which variables are read."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __missing__(self, name: str) -> str:
        self.names.add(name)
        return ""

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return default


def test_the_contract_names_every_variable_of_the_functions() -> None:
    asked = Asked()
    from_environment(asked)
    assert asked.names == {*CONTRACT["environment"], *CONTRACT["fleetEnvironment"]}


def test_the_contract_has_the_adapters_policy() -> None:
    """The policy is written twice: the stack gives the functions only those limits that the operator has changed."""
    assert msgspec.convert(CONTRACT["policy"], Policy, strict=False) == POLICY
    # The form in which the functions get it.
    assert read_policy(msgspec.json.encode(CONTRACT["policy"]).decode()) == POLICY


def test_the_contract_has_the_adapters_queue_figures() -> None:
    assert CONTRACT["queue"]["maxReceiveCount"] == LARGEST_RECEIVES
    assert CONTRACT["queue"]["visibilityS"] >= POLICY.lease_s


def test_the_contract_has_the_routes_of_the_functions(start: Start, stack: Stores) -> None:
    states.create_accounts(stack)
    served = {name: start(name).handle.__self__._served for name in ("client", "worker")}
    assert served["worker"] == set(CONTRACT["workerRoutes"])
    assert served["client"] == {route.name for route in routes.ROUTES if route.role in {"user", "any"}}


def test_no_payload_expires_before_its_package() -> None:
    days = CONTRACT["blobs"]
    kept_s = POLICY.lifetime_s + POLICY.retention_s
    assert days.keys() == {"code/", "data/", "results/"}
    assert min(days["data/"], days["results/"]) * DAY_S > kept_s
    assert days["code/"] * DAY_S > FRESH_S + kept_s


def test_all_rows_expire_but_accounts(stack: Stores) -> None:
    """All rows of a package expire, in case a crash left them; of accounts only what a package or a grant recorded."""
    states.create_accounts(stack)
    states.create_package(stack, "p")
    stack.packages.append("p", [("acknowledge", Acknowledged())])
    assert stack.accounts.grant("a", "key", 1) is not None
    assert kinds("PACKAGE") == ({"head", "spec", "i#acknowledge"}, set())
    assert kinds("ACCOUNT") == ({"settlement", "slice#000000", "key"}, {"account", "token", "name", "a", "poor"})


def kinds(table: str) -> tuple[set[str], set[str]]:
    """Return the sort keys of a table's rows: of those that expire, and of the others."""
    items = clients(engines.moto()).dynamodb.scan(TableName=os.environ[f"CLOUDPAR_{table}_TABLE"])["Items"]
    expiring = {item["sk"]["S"] for item in items if CONTRACT["ttlAttribute"] in item}
    return expiring, {item["sk"]["S"] for item in items} - expiring


def test_the_stack_and_the_functions_use_the_same_names() -> None:
    assert f"{CONTRACT['stackPrefix']}-" == PREFIX
    assert RequestLog()._namespace == CONTRACT["metricsNamespace"]
