"""The functions as Lambda starts them: newly imported modules, in the environment that the stack gives them."""

import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from aws import engines
from aws.stores import REGION, clients, create, name_of, on_moto
from cloudpar_master.adapters.aws.parameter_key import ParameterKey
from cloudpar_master.services.backend import hash_token
from cloudpar_protocol.tokens import new_token
from support.clock import SetClock
from support.stores import Stores

WORKER_TOKEN = "worker-token"
USER_TOKEN = new_token()

Start = Callable[[str], ModuleType]


class Context:
    """The context that Lambda passes to a handler."""

    aws_request_id = "request-1"
    remaining_ms = 30_000

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining_ms


class RunningClock(SetClock):
    """Moves with the machine's time, which the functions use, so that moto uses it too."""

    def now(self) -> float:
        return time.time()


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stores:
    """Resources on moto, the functions' environment, and adapters with which a test inspects the resources."""
    with on_moto(tmp_path, RunningClock()) as stores:
        pass
    endpoint = engines.moto()
    at = clients(endpoint)
    names = create(name_of(tmp_path), endpoint, endpoint, endpoint)
    secret = at.secrets.create_secret(Name=f"token-{name_of(tmp_path)}", SecretString=WORKER_TOKEN)["ARN"]
    parameter = f"/cloudpar/{name_of(tmp_path)}/accounts-key"  # as if an earlier instance of a function had made it
    ParameterKey(lambda: at.parameters, parameter)()
    for name, value in {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": REGION,
        "CLOUDPAR_PACKAGE_TABLE": names.packages,
        "CLOUDPAR_ACCOUNT_TABLE": names.accounts,
        "CLOUDPAR_QUEUE_URL": names.queue_url,
        "CLOUDPAR_DEAD_LETTER_QUEUE_URL": names.dead_letter_url,
        "CLOUDPAR_EXPRESS_QUEUE_URL": names.express_url,
        "CLOUDPAR_BUCKET": names.bucket,
        "CLOUDPAR_WORKER_TOKEN_SECRET": secret,
        "CLOUDPAR_KEY_PARAMETER": parameter,
        "CLOUDPAR_POLICY": json.dumps(
            {"lease_s": 30, "chunk_target_us": 1000, "request_burst": 10**9, "running_packages": 10**9}
        ),
        # A service has one logger, with one stream, for the life of the process.
        "POWERTOOLS_SERVICE_NAME": name_of(tmp_path),
        "POWERTOOLS_METRICS_NAMESPACE": "Cloudpar",
    }.items():
        monkeypatch.setenv(name, value)
    return stores


@pytest.fixture
def start(stack: Stores) -> Iterator[Start]:
    """Import a handler's module as a new instance of the function would."""

    def fresh(name: str) -> ModuleType:
        sys.modules.pop(f"cloudpar_handlers.{name}", None)
        return importlib.import_module(f"cloudpar_handlers.{name}")

    yield fresh
    for name in [name for name in sys.modules if name.startswith("cloudpar_handlers.")]:
        del sys.modules[name]


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[dict[str, Any]]]:
    """Return the log lines since the last call."""

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return lines


__all__ = ["USER_TOKEN", "WORKER_TOKEN", "Context", "Start", "hash_token"]
