"""infra/lib/contract.json, by which the stack is made, says what adapters and functions go by.

Names of tables' keys and indexes are held by every test of the adapters: their tables are made by it, too.
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
from master.stores import Stores

from . import states
from .conftest import Start


class Asked(dict[str, str]):
    """An environment that notes what it is asked for, and has nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __missing__(self, name: str) -> str:
        self.names.add(name)
        return ""

    def get(self, name: str, default: Any = None) -> Any:
        """Ask."""
        self.names.add(name)
        return default


def test_environment() -> None:
    asked = Asked()
    from_environment(asked)
    assert asked.names == {*CONTRACT["environment"], *CONTRACT["clientEnvironment"]}


def test_policy() -> None:
    """It stands twice, since the adapters are used without the stack, too."""
    assert msgspec.convert(CONTRACT["policy"], Policy, strict=False) == POLICY
    assert read_policy(msgspec.json.encode(CONTRACT["policy"]).decode()) == POLICY  # as the functions are given it


def test_queue() -> None:
    assert CONTRACT["queue"]["maxReceiveCount"] == LARGEST_RECEIVES
    assert CONTRACT["queue"]["visibilityS"] >= POLICY.lease_s


def test_routes(start: Start, stack: Stores) -> None:
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


def test_what_expires(stack: Stores) -> None:
    """All of a package, in case a crash left it; of accounts what a package or a grant noted, never the account."""
    states.create_accounts(stack)
    states.create_package(stack, "p")
    stack.packages.append("p", [("acknowledge", Acknowledged())])
    assert stack.accounts.grant("a", "key", 1) is not None
    assert kinds("PACKAGE") == ({"head", "spec", "i#acknowledge"}, set())
    assert kinds("ACCOUNT") == ({"settlement", "slice#000000", "key"}, {"account", "token", "name", "a", "poor"})


def kinds(table: str) -> tuple[set[str], set[str]]:
    """The sort keys of a table's rows: of those that expire, and of the others."""
    items = clients(engines.moto()).dynamodb.scan(TableName=os.environ[f"CLOUDPAR_{table}_TABLE"])["Items"]
    expiring = {item["sk"]["S"] for item in items if CONTRACT["ttlAttribute"] in item}
    return expiring, {item["sk"]["S"] for item in items} - expiring


def test_names() -> None:
    assert f"{CONTRACT['stackPrefix']}-" == PREFIX
    assert RequestLog()._namespace == CONTRACT["metricsNamespace"]
