"""The real CDK app, deployed to the stand-in, and whoever operates it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cli.operation import CLOUDPAR
from cloudpar import Pool
from cloudpar.deployment import administration
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts

from .stand_in import ACCOUNT, REGION, StandIn

ROOT = Path(__file__).parents[2]
STACK = "Cloudpar-dev"
COMMAND_S = 300.0
"""Only a hang takes this long."""


class Deployment:
    """One stack. What is deployed is what a user deploys, but for the functions' architecture, which is this machine's,
    and the alarms on metric math, which the stand-in lacks; the worker's image is named and never pulled.
    """

    def __init__(self, aws: StandIn, folder: Path) -> None:
        self.aws = aws
        self.log = ""
        """What the CDK said at last."""
        self.endpoint = ""
        self.worker_token = ""
        self._folder = folder
        self._outputs: dict[str, str] = {}

    def bundle(self) -> Path:
        """Build the functions' code for this machine."""
        bundle = self._folder / "bundle"
        self._run("functions/bundle.sh", str(bundle), "host")
        return bundle

    def bootstrap(self) -> None:
        """Prepare the account for the CDK."""
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", "")

    def deploy(self, bundle: Path) -> None:
        """Make the stack, or bring it up to date."""
        outputs = self._folder / "outputs.json"
        settings = ("env=dev", f"bundle={bundle}", "workerImage=example/worker:1", "architectures=x86_64")
        # Beside the others' work: the CLI locks the folder that it synthesizes to.
        with tempfile.TemporaryDirectory(dir=self._folder) as assembly:
            self._cdk(
                "deploy", *(part for setting in settings for part in ("-c", setting)), "--output", assembly,
                "--parameters", "MathAlarms=false", "--require-approval", "never", "--outputs-file", str(outputs),
            )  # fmt: skip
        self._outputs = json.loads(outputs.read_text())[STACK]
        api = self._outputs["Endpoint"].partition("://")[2].partition(".")[0]
        # Its own name for an API is a host that no resolver knows.
        self.endpoint = f"{self.aws.url}/_aws/execute-api/{api}/$default"
        secret = self.aws.client("secretsmanager").get_secret_value(SecretId=self._outputs["WorkerTokenSecret"])
        self.worker_token = secret["SecretString"]

    def other_bundle(self, bundle: Path) -> Path:
        """The same code with another hash, so that every function is replaced."""
        other = bundle.with_name("other-bundle")
        shutil.copytree(bundle, other)
        with (other / "cloudpar_handlers" / "__init__.py").open("a") as file:
            file.write("\nRELEASE = 2\n")
        return other

    def destroy(self) -> None:
        """As a user does."""
        self._run(*CLOUDPAR, "destroy", "--env", "dev", "--yes")

    def stacks(self) -> list[str]:
        """What there is."""
        pages = self.aws.client("cloudformation").get_paginator("describe_stacks").paginate()
        return [each["StackName"] for page in pages for each in page["Stacks"]]

    def pool(self, token: str) -> Pool:
        """Somebody's pool."""
        return Pool(self.endpoint, token, progress=False)

    def admin(self) -> list[str]:
        """The options of an operator, whom IAM knows."""
        return ["--stack", STACK]

    def outputs(self) -> dict[str, str]:
        """What the stack says of itself now."""
        (there,) = self.aws.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in there["Outputs"]}

    def create_account(self, name: str) -> None:
        """As an operator does."""
        self._run(*CLOUDPAR, "account", "create", name, "--hours", "1", *self.admin())

    def accounts(self) -> list[Account]:
        """All accounts."""
        return administration.connect(STACK, REGION).call(routes.LIST_ACCOUNTS, ListAccounts()).accounts

    def _cdk(self, *arguments: str) -> None:
        self._run("node_modules/.bin/cdk", *arguments, "--ci")

    def _run(self, *command: str) -> None:
        self.log = run(command, self.aws.environment)


def run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command that succeeds; what it wrote."""
    ended = subprocess.run(
        command, cwd=ROOT, env=environment | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=COMMAND_S,
    )  # fmt: skip
    assert ended.returncode == 0, f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout[-5000:]}"
    return ended.stdout
