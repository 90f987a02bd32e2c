"""The real CDK app, deployed to the stand-in, and its operator."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cloudpar import Pool
from cloudpar.deployment import administration
from cloudpar_protocol import routes
from cloudpar_protocol.account_messages import Account, ListAccounts
from support.command import CLOUDPAR

from .stand_in import ACCOUNT, REGION, StandIn

ROOT = Path(__file__).parents[2]
STACK = "Cloudpar-dev"
COMMAND_S = 300.0
"""A time that only a hanging command exceeds."""


class Deployment:
    """One stack. It equals a user's, except for the functions' architecture, which is this machine's; the worker's
    image is named and never pulled.

    Args:
        aws: Where to deploy.
        folder: Where the deployment keeps files.
        https: A URL with TLS that leads to the stand-in.
    """

    def __init__(self, aws: StandIn, folder: Path, https: str) -> None:
        self.aws = aws
        self.log = ""
        """The last output of the CDK."""
        self.endpoint = ""
        self.worker_token = ""
        self._folder, self._https = folder, https
        self._outputs: dict[str, str] = {}

    def bundle(self) -> Path:
        """Build the functions' code for this machine."""
        bundle = self._folder / "bundle"
        self._run("functions/bundle.sh", str(bundle), "host")
        return bundle

    def bootstrap(self) -> None:
        """Prepare the account for the CDK."""
        self._cdk("bootstrap", f"aws://{ACCOUNT}/{REGION}", "--app", "")

    def deploy(self, bundle: Path, *more: str) -> None:
        """Create or update the stack, perhaps with more settings."""
        outputs = self._folder / "outputs.json"
        settings = ("env=dev", f"bundle={bundle}", "workerImage=example/worker:1", "architectures=x86_64", *more)
        # Another deployment may run at the same time: the CLI locks the folder that it synthesizes to.
        with tempfile.TemporaryDirectory(dir=self._folder) as assembly:
            self._cdk(
                "deploy", *(part for setting in settings for part in ("-c", setting)), "--output", assembly,
                "--require-approval", "never", "--outputs-file", str(outputs),
            )  # fmt: skip
        self._outputs = json.loads(outputs.read_text())[STACK]
        api = self._outputs["Endpoint"].partition("://")[2].partition(".")[0]
        # The stand-in's own host name of an API cannot be resolved. As on AWS, the endpoint has TLS: tokens are sent
        # over plain HTTP only to a master that proves itself, and one on AWS does not.
        self.endpoint = f"{self._https}/_aws/execute-api/{api}/$default"
        secret = self.aws.client("secretsmanager").get_secret_value(SecretId=self._outputs["WorkerTokenSecret"])
        self.worker_token = secret["SecretString"]

    def other_bundle(self, bundle: Path) -> Path:
        """Return the same code with another hash, so that a deployment replaces every function."""
        other = bundle.with_name("other-bundle")
        shutil.copytree(bundle, other)
        with (other / "cloudpar_handlers" / "__init__.py").open("a") as file:
            file.write("\nRELEASE = 2\n")
        return other

    def destroy(self) -> None:
        """Destroy the stack as a user does."""
        self._run(*CLOUDPAR, "destroy", "--env", "dev", "--yes")

    def stacks(self) -> list[str]:
        """List the existing stacks."""
        pages = self.aws.client("cloudformation").get_paginator("describe_stacks").paginate()
        return [each["StackName"] for page in pages for each in page["Stacks"]]

    def pool(self, token: str) -> Pool:
        """Open a pool with this token."""
        return Pool(self.endpoint, token, progress=False)

    def admin(self) -> list[str]:
        """The options of an operator, who is authenticated by IAM."""
        return ["--stack", STACK]

    def outputs(self) -> dict[str, str]:
        """Return the stack's current outputs."""
        (there,) = self.aws.client("cloudformation").describe_stacks(StackName=STACK)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in there["Outputs"]}

    def create_account(self, name: str) -> None:
        """Create an account as an operator does."""
        self._run(*CLOUDPAR, "account", "create", name, "--hours", "1", *self.admin())

    def accounts(self) -> list[Account]:
        return administration.connect(STACK, REGION).call(routes.LIST_ACCOUNTS, ListAccounts()).accounts

    def _cdk(self, *arguments: str) -> None:
        self._run("node_modules/.bin/cdk", *arguments, "--ci")

    def _run(self, *command: str) -> None:
        self.log = run(command, self.aws.environment)


def run(command: Sequence[str], environment: dict[str, str]) -> str:
    """Run a command that succeeds, and return its output."""
    ended = subprocess.run(
        command, cwd=ROOT, env=environment | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        timeout=COMMAND_S,
    )  # fmt: skip
    assert ended.returncode == 0, f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stdout[-5000:]}"
    return ended.stdout
