"""AWS on this machine's loopback interface: ministack, in its own venv with its own home."""

import os
import socket
import subprocess
from pathlib import Path
from typing import Any, Self

import botocore.session
import urllib3
from botocore.config import Config

from support.processes import stop
from support.waiting import until

REGION = "us-east-1"
ACCOUNT = "000000000000"

PROGRAM = Path(os.environ.get("CLOUDPAR_MINISTACK", Path(__file__).parents[2] / "build" / "e2e" / "bin" / "ministack"))
"""ministack in the venv that `make e2e` makes."""


class StandIn:
    """ministack, and the processes that use it: their environment leads to no other AWS."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "ministack.log"
        home = folder / "home"
        home.mkdir()
        self.url = f"http://127.0.0.1:{free_port()}"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CLOUDPAR_", "CDK_"))},
            "HOME": str(home), "XDG_CONFIG_HOME": str(home), "TMPDIR": str(folder), "NO_PROXY": "127.0.0.1,localhost",
            "AWS_ENDPOINT_URL": self.url, "AWS_ENDPOINT_URL_S3": self.url, "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": REGION, "AWS_DEFAULT_REGION": REGION,
            "CDK_DISABLE_VERSION_CHECK": "1", "CDK_DISABLE_CLI_TELEMETRY": "1", "NO_COLOR": "1",
            "npm_config_update_notifier": "false",
        }  # fmt: skip
        own = {"BIND_HOST": "127.0.0.1", "MINISTACK_HOST": "127.0.0.1", "GATEWAY_PORT": self.url.rpartition(":")[2]}
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [str(PROGRAM)], env=self.environment | own, cwd=folder, stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log()
        try:
            answer = urllib3.request("GET", f"{self.url}/_ministack/health", retries=False)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200

    def log(self) -> str:
        """Return its output, with the output of the functions."""
        return self._log.read_text(errors="replace")

    def client(self, service: str) -> Any:
        """Return a client of one service."""
        session = botocore.session.Session()
        session.set_credentials("test", "test")
        config = Config(retries={"total_max_attempts": 2})
        return session.create_client(service, REGION, endpoint_url=self.url, config=config)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.process)


def free_port() -> int:
    """Return a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
