"""A checkout with the script infra/acceptance.sh and fakes of the commands that it runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

from support.processes import stop
from support.waiting import HANG_S, until

ROOT = Path(__file__).parents[2]

FAKE = """#!/usr/bin/env bash
cd "$(dirname "$0")/../../world"
printf '%s\\x1f' "${0##*/}" "$@" >>calls
printf '\\0' >>calls
missing() { echo "An error occurred ($1) when calling the operation" >&2; exit 254; }
for name in "${0##*/} $1 $2" "${0##*/} $1"; do
  if [[ -e "answers/$name" ]]; then source "answers/$name"; exit; fi
done
"""
"""Notes its call, and runs the answer to it, if there is one."""

TOOLS = ("bash", "cat", "dirname", "grep", "mkdir", "mv", "rm", "sleep", "tail", "touch")
"""What the script and the fakes find on the PATH besides. A machine's own `aws` must not be there."""

ACCOUNT = "123456789012"

HERE = ("--region", "eu-west-1")
NO_INTERRUPTION = (*HERE, "--without", "interruption")

RESOURCES = {
    "AWS::AutoScaling::AutoScalingGroup": "workers",
    "AWS::DynamoDB::Table": "packages",
    "AWS::EC2::VPC": "vpc-1",
    "AWS::IAM::Role": "timer",
    "AWS::Lambda::Function": "client",
    "AWS::Logs::LogGroup": "/cloudpar/dev",
    "AWS::S3::Bucket": "payloads",
    "AWS::SQS::Queue": "https://sqs.example/tasks",
    "AWS::SSM::Parameter": "/cloudpar/dev/settings",
    "AWS::SecretsManager::Secret": "token",
}
"""A name for each type of resource that the script looks for."""

LOOKS = {
    "aws autoscaling describe-auto-scaling-groups": "",
    "aws dynamodb describe-table": "missing ResourceNotFoundException",
    "aws ec2 describe-vpcs": "missing InvalidVpcID.NotFound",
    "aws lambda get-function-configuration": "missing ResourceNotFoundException",
    "aws logs describe-log-groups": "",
    "aws s3api head-bucket": "missing 404",
    "aws sqs get-queue-attributes": "missing AWS.SimpleQueueService.NonExistentQueue",
    "aws ssm get-parameter": "missing ParameterNotFound",
    "aws secretsmanager describe-secret": "missing ResourceNotFoundException",
}
"""How the services answer when a resource does not exist."""

DESTROY = ["aws cloudformation list-stack-resources", "cloudpar destroy"]
LEFTOVERS = ["aws iam get-role", *LOOKS, "aws iam get-role", "aws ec2 describe-instances"]

STATUS = """
if [[ ! -e stack ]]; then echo 'Error: there is no stack' >&2; exit 5; fi
fleet='{"desired": 1, "running": 1, "instances": [
  {"id": "i-0", "spot": false, "state": "InService"}, {"id": "i-1", "spot": true, "state": "InService"}]}'
if [[ -e idle ]]; then fleet='{"desired": 0, "running": 0, "instances": []}'; fi
if [[ -e ends ]]; then touch idle; fi
echo "{\\"fleet\\": $fleet}"
"""

ANSWERS = LOOKS | {
    "cloudpar status": STATUS,
    "cloudpar deploy": f"""touch stack; echo '{{"profile": "the profile", "account": "{ACCOUNT}"}}'""",
    "cloudpar destroy": "rm stack",
    "aws iam create-role": "touch role",
    "aws iam get-role": 'if [[ -e role && $4 == cloudpar-accept* ]]; then echo "$4"; else missing NoSuchEntity; fi',
    "aws iam delete-role": "rm role",
    "aws fis create-experiment-template": "echo template-1",
    "aws fis start-experiment": "echo experiment-1",
    "aws fis get-experiment": "touch interrupted; printf 'completed\\tsent\\n'",
    "aws ec2 describe-instances": "if [[ $* == *--instance-ids* ]]; then touch ends; echo terminated; fi",
    "aws cloudformation list-stack-resources": "".join(f"echo '{kind}\t{name}'\n" for kind, name in RESOURCES.items()),
}

POOL = """
import os, time
from pathlib import Path

world = Path(__file__).parent
slept = []
time.sleep, wait = slept.append, time.sleep


class Pool:
    def __enter__(self):
        assert "CLOUDPAR_ENDPOINT" not in os.environ
        assert os.environ["CLOUDPAR_PROFILE"] == "the profile"
        (world / "pids").open("a").write(f"{os.getpid()}\\n")
        return self

    def __exit__(self, *_):
        pass

    def map(self, function, values):
        if len(values) > 200:  # the map that an interruption meets
            while not (world / "interrupted").exists():
                wait(0.01)
        found = [function(value) for value in values]
        with (world / "calls").open("a") as calls:
            calls.write(f"map\\x1f{len(values)}\\x1f\\0")
        self.execute_s = sum(slept) * float((world / "charged").read_text())
        self.last_report = self
        return found[: int((world / "results").read_text())]
"""


class Checkout:
    """Runs a copy of the script, whose commands are fakes. A fake notes its call and runs the answer to it.

    An answer is a piece of a shell script. It runs in the folder `world`, whose files are the state of the fake AWS:
    `stack` and `role` exist as long as these do; FIS makes `interrupted`; when the interrupted instance `ends`, the
    fleet is `idle` after one more look.

    Args:
        root: An empty folder.
    """

    def __init__(self, root: Path) -> None:
        self._root, self.world = root, root / "world"
        for folder in ("infra", ".venv/bin", "tools/bin", "world/answers"):
            (root / folder).mkdir(parents=True)
        (root / "infra/acceptance.sh").write_bytes((ROOT / "infra/acceptance.sh").read_bytes())
        for name in TOOLS:
            (root / "tools/bin" / name).symlink_to(str(shutil.which(name)))
        self._program(".venv/bin/cloudpar", FAKE)
        self._program("tools/bin/aws", FAKE)
        self._program(".venv/bin/python", f'#!/bin/sh\nPYTHONPATH="{self.world}" exec {sys.executable} -B -S "$@"\n')
        (self.world / "cloudpar.py").write_text(POOL)
        self.state(calls="", pids="", results="1000", charged="1")
        for call, answer in ANSWERS.items():
            self.answer(call, answer)

    def _program(self, name: str, text: str) -> None:
        (self._root / name).write_text(text)
        (self._root / name).chmod(0o755)

    def answer(self, call: str, answer: str) -> None:
        """Answer calls such as `aws iam get-role` by a piece of a shell script."""
        (self.world / "answers" / call).write_text(answer)

    def state(self, **files: str) -> None:
        """Write files of the world."""
        for name, text in files.items():
            (self.world / name).write_text(text)

    def remove(self, name: str) -> None:
        """Remove a file of the checkout."""
        (self._root / name).unlink()

    def start(self, *options: str, **environment: str) -> "subprocess.Popen[str]":
        """Start the script."""
        own = {"PATH": f"{self._root}/tools/bin", "CLOUDPAR_LOOK_S": "0"}
        return subprocess.Popen(
            [str(shutil.which("bash")), str(self._root / "infra/acceptance.sh"), *options],
            env=own | environment, cwd=os.sep,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def run(self, *options: str, **environment: str) -> tuple[int, str]:
        """Run the script to its end, and return its exit code and its output."""
        process = self.start(*options, **environment)
        try:
            output, _ = process.communicate(timeout=HANG_S)
        except subprocess.TimeoutExpired:
            stop(process)
            raise
        return process.returncode, output

    def calls(self) -> list[list[str]]:
        """Return the programs that ran, each with its arguments, and the maps with their numbers of tasks."""
        lines = (self.world / "calls").read_text().split("\0")[:-1]
        return [line.split("\x1f")[:-1] for line in lines]

    def names(self) -> list[str]:
        """Return the calls without their options."""
        return [" ".join(call[: 3 if call[0] == "aws" else 2]) for call in self.calls()]

    def await_end_of_maps(self) -> None:
        """Wait until all processes that have run maps have ended."""
        pids = [int(line) for line in (self.world / "pids").read_text().split()]
        until(lambda: not any(map(runs, pids)))

    def assert_deleted(self) -> None:
        """Assert that the pool was deleted as the last thing but the search for what is left, which was complete."""
        names = self.names()
        number = len(names) - len(LEFTOVERS)
        assert names[number - len(DESTROY) : number] == DESTROY
        assert sorted(names[number:]) == sorted(LEFTOVERS)


def runs(pid: int) -> bool:
    """Return whether a process has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
