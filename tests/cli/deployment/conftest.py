"""An AWS account that exists only in this process, a checkout to deploy from, and the tools on its PATH."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.loaders import create_loader
from moto import mock_aws

from cli.deployment import fake_cdk
from cli.deployment.stand_in import NAME, StandIn
from cloudpar.deployment import checks
from support.fake_master import TOKEN, FakeMaster

GROUP = f"{NAME}-workers"
LOADER = create_loader()

TEMPLATE: dict[str, Any] = {
    "Resources": {
        "Packages": {"Type": "AWS::DynamoDB::Table", "Properties": {}, "DeletionPolicy": "Retain"},
        "Blobs": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain"},
        "Token": {"Type": "AWS::SecretsManager::Secret", "DeletionPolicy": "Retain"},
        "Tasks": {"Type": "AWS::SQS::Queue", "DeletionPolicy": "Delete"},
        "Log": {"Type": "AWS::Logs::LogGroup", "DeletionPolicy": "Delete"},
        "Timer": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Handler": "cloudpar_handlers.timer.handle", "MemorySize": 512},
        },
        "Client": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Handler": "cloudpar_handlers.client.handle", "MemorySize": 1024},
        },
        "Lost": {
            "Type": "AWS::Lambda::EventSourceMapping",
            "Properties": {"EventSourceArn": {"Fn::GetAtt": ["QueueLost", "Arn"]}},
        },
        "Schedule": {"Type": "AWS::Events::Rule", "Properties": {}},
        "Errors": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"MetricName": "5xx"}},
        "Capacity": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"Metrics": [{"Expression": "a + b"}, {"MetricStat": {}}, {"MetricStat": {}}]},
        },
        "Host": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {"LaunchTemplateData": {"BlockDeviceMappings": [{"Ebs": {"VolumeSize": 30}}]}},
        },
        "Network": {"Type": "AWS::EC2::VPC", "Properties": {}},
        "CDKMetadata": {"Type": "AWS::CDK::Metadata"},
    }
}


@pytest.fixture
def home(unconfigured: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home with credentials of no real AWS account, from which no network is reached."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in {
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "NO_PROXY": "127.0.0.1",
    }.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.fixture
def aws(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    """Start a stand-in for AWS with nothing in it."""
    cloud = home / "cloud"
    cloud.mkdir()
    with mock_aws():
        stand_in = StandIn(cloud)
        stand_in.template = TEMPLATE
        monkeypatch.setattr(
            "botocore.client.BaseClient._make_api_call",
            stand_in.call_for,
        )
        # Each session would read AWS's models again, which takes longer than the rest of a test.
        monkeypatch.setattr("botocore.session.create_loader", lambda *_: LOADER)
        monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
        monkeypatch.setenv("CLOUD", str(cloud))
        yield stand_in


@pytest.fixture
def project(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout with its packages installed as the working folder, and a PATH with all tools."""
    root, tools = home / "checkout", home / "bin"
    (root / "node_modules/aws-cdk-lib").mkdir(parents=True)
    (root / "functions").mkdir()
    (root / "cdk.json").write_text(json.dumps({"app": "npx tsx infra/bin/cloudpar.ts"}))
    script(root / "functions/bundle.sh", '#!/bin/sh\necho "bundled for $2"\n')
    tools.mkdir()
    script(tools / "cdk", f"#!{sys.executable} -ISE\n{Path(fake_cdk.__file__).read_text()}")
    for name, answer in {"node": "v20.20.2", "npx": "10.8.2", "uv": "uv 0.9"}.items():
        script(tools / name, f"#!/bin/sh\necho {answer}\n")
    script(tools / "docker", docker("linux/amd64, linux/arm64*, linux/386"))
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    monkeypatch.chdir(root)
    return root


def docker(platforms: str) -> str:
    """Return a Docker that builds for these platforms."""
    return f"#!/bin/sh\ncase $1 in\nversion) echo Docker 28 ;;\nbuildx) echo 'Platforms: {platforms}' ;;\nesac\n"


def script(path: Path, text: str) -> None:
    """Write an executable."""
    path.write_text(text)
    path.chmod(0o755)


def outputs(endpoint: str = "https://pool.example") -> dict[str, str]:
    """Return the outputs of a stack whose queues do not exist."""
    return {"Endpoint": endpoint, "AccountFunction": "account-function", "Region": "us-east-1"}


@pytest.fixture
def master(aws: StandIn, project: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeMaster]:
    """Start the master behind the deployed endpoint; the CDK is bootstrapped."""
    boto3.client("ssm", "us-east-1").put_parameter(Name=checks.BOOTSTRAP_PARAMETER, Value="21", Type="String")
    monkeypatch.setattr("cloudpar.cli.account.new_token", lambda: TOKEN)
    with FakeMaster() as running:
        (aws.folder / "outputs.json").write_text(json.dumps(outputs(running.endpoint)))
        yield running


@pytest.fixture
def deployed(aws: StandIn) -> StandIn:
    """Make a stack with queues and a fleet at zero instances."""
    sqs = boto3.client("sqs", "us-east-1")
    urls = [
        sqs.create_queue(QueueName=f"{name}.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
        for name in ("tasks", "lost")
    ]
    template = {"ImageId": "ami-12c6146b", "InstanceType": "c7g.large"}
    boto3.client("ec2", "us-east-1").create_launch_template(LaunchTemplateName="workers", LaunchTemplateData=template)
    boto3.client("autoscaling", "us-east-1").create_auto_scaling_group(
        AutoScalingGroupName=GROUP, MinSize=0, MaxSize=4, AvailabilityZones=["us-east-1a"],
        LaunchTemplate={"LaunchTemplateName": "workers"},
    )  # fmt: skip
    aws.deploy(outputs() | {"QueueUrl": urls[0], "DeadLetterQueueUrl": urls[1], "FleetGroup": GROUP})
    return aws
