"""`cloudpar status` prints AWS's state of a deployment."""

import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from rich.console import Console

from cli.deployment.conftest import GROUP, outputs
from cli.deployment.stand_in import NAME, StandIn
from cli.here import Here
from cloudpar.deployment import fleet
from cloudpar.deployment.aws import Aws
from cloudpar.deployment.fleet import Fleet


def want(instances: int) -> None:
    boto3.client("autoscaling", "us-east-1").set_desired_capacity(AutoScalingGroupName=GROUP, DesiredCapacity=instances)


def test_status_of_a_fleet_at_zero_instances(deployed: StandIn, here: Here) -> None:
    found = here.json("status")
    assert found["fix"] is None
    assert (found["stack"], found["state"], found["region"]) == (NAME, "CREATE_COMPLETE", "us-east-1")
    assert found["fleet"] == {
        "desired": 0, "maximum": 4, "running": 0, "starting": 0, "instances": [], "reason": None
    }  # fmt: skip
    assert found["queue"] == {"waiting": 0, "running": 0, "lost": 0}
    hour = found["usd_hour"]
    assert (hour["instances"], hour["volumes"], hour["addresses"]) == (0, 0, 0)
    assert found["usd_hour_total"] == pytest.approx(hour["idle"], abs=1e-4)


def test_status_of_a_running_fleet(deployed: StandIn, here: Here) -> None:
    want(2)
    boto3.client("sqs", "us-east-1").send_message(
        QueueUrl=deployed_url("tasks"), MessageBody="x", MessageGroupId="g", MessageDeduplicationId="g"
    )
    found = here.json("status")
    assert (found["fleet"]["running"], found["fleet"]["starting"]) == (2, 0)
    assert found["queue"]["waiting"] == 1
    for instance in found["fleet"]["instances"]:
        assert (instance["type"], instance["spot"], instance["state"]) == ("c7g.large", False, "InService")
        assert instance["usd"] == 0.0725
    assert found["usd_hour"]["instances"] == pytest.approx(0.145)
    assert found["usd_hour"]["volumes"] == pytest.approx(2 * 30 * 0.08 / 730)  # the template's 30 GiB
    out = here("status").out
    for words in ("2 instances; wanted 2, at most 4", "chunks: 1 wait", "on demand", "USD an hour"):
        assert words in out


def deployed_url(name: str) -> str:
    return str(boto3.client("sqs", "us-east-1").get_queue_url(QueueName=f"{name}.fifo")["QueueUrl"])


def test_the_reason_why_no_instance_starts_is_shown(deployed: StandIn, here: Here) -> None:
    deployed.group = {"DesiredCapacity": 2, "MaxSize": 4, "Instances": []}
    deployed.activities = [activity("Failed", "We currently do not have sufficient c7g.large capacity.")]
    found = here.json("status")
    assert (found["fleet"]["running"], found["fleet"]["starting"]) == (0, 2)
    assert found["fleet"]["reason"] == "We currently do not have sufficient c7g.large capacity."
    assert "AWS says: We currently" in here("status").out


def test_spot_instances_at_their_prices_now(deployed: StandIn) -> None:
    member = {"InstanceId": "i-1", "InstanceType": "c8g.large", "AvailabilityZone": "us-east-1b"}
    other = {"InstanceId": "i-2", "InstanceType": "x9.large", "AvailabilityZone": "us-east-1b"}
    members = [each | {"LifecycleState": "Pending"} for each in (member, other)]
    deployed.group = {"DesiredCapacity": 2, "MaxSize": 4, "Instances": members}
    deployed.lifecycles = {"i-1": "spot", "i-2": ""}
    deployed.spot_prices = {("c8g.large", "us-east-1b"): 0.031}
    found = fleet.read(Aws(), GROUP)
    assert isinstance(found, Fleet)
    assert [(each.spot, each.usd) for each in found.instances] == [(True, 0.031), (False, None)]
    deployed.refusals["DescribeSpotPriceHistory"] = ("UnauthorizedOperation", "no")
    found = fleet.read(Aws(), GROUP)
    assert isinstance(found, Fleet)
    assert [each.usd for each in found.instances] == [None, None]


def test_an_old_machine_image_has_the_command_that_takes_a_newer_one(deployed: StandIn, here: Here) -> None:
    now = datetime.now(UTC)
    deployed.machine_images = {"ami-1": now - timedelta(days=31, hours=1), "ami-2": now - timedelta(days=2)}
    assert here.json("status")["image_days"] == 31
    out = here("status").out
    assert "the machine image is 31 days old: run `cloudpar deploy --env dev --region us-east-1`" in out


def test_a_new_machine_image_needs_no_advice(deployed: StandIn, here: Here) -> None:
    deployed.machine_images = {"ami-1": datetime.now(UTC) - timedelta(days=30)}
    assert here.json("status")["image_days"] == 30
    assert "machine image" not in here("status").out


@pytest.mark.parametrize("refused", [True, False], ids=["no permission", "no such image"])
def test_without_the_age_of_the_machine_image_the_status_is_shown(deployed: StandIn, here: Here, refused: bool) -> None:
    deployed.machine_images = {"ami-1": datetime.now(UTC)}
    if refused:
        deployed.refusals["DescribeImages"] = ("UnauthorizedOperation", "no")
    else:
        deployed.answer("DescribeImages", {"Images": []})
    assert here.json("status")["image_days"] is None
    assert "fleet     0 instances" in here("status").out


def activity(code: str, message: str | None = None, what: str = "Launching a new EC2 instance") -> dict[str, Any]:
    made = {"ActivityId": "1", "AutoScalingGroupName": GROUP, "Cause": "c", "StartTime": datetime.now(UTC)}
    return made | {"Description": what, "StatusCode": code} | ({"StatusMessage": message} if message else {})


@pytest.mark.parametrize(
    ("activities", "reason"),
    [
        ([], None),
        ([activity("Successful"), activity("Failed", "old")], None),
        ([activity("Failed", "end", what="Terminating EC2 instance"), activity("Failed", "full")], "full"),
        ([activity("Cancelled")], "Cancelled"),
        ([activity("WaitingForSpotInstanceId", "waits")], "waits"),
    ],
)
def test_the_newest_launch_counts(activities: list[dict[str, Any]], reason: str | None) -> None:
    assert fleet.failure(activities) == reason


@pytest.mark.parametrize(
    ("state", "fix"),
    [
        ("ROLLBACK_COMPLETE", "never made whole: run `cloudpar destroy --env dev --region us-east-1`"),
        ("ROLLBACK_FAILED", "never made whole: run `cloudpar destroy --env dev --region us-east-1`"),
        ("DELETE_FAILED", "could not be deleted: run `cloudpar destroy --env dev --region us-east-1`"),
        ("REVIEW_IN_PROGRESS", "nothing of it was made yet: run `cloudpar deploy --env dev --region us-east-1`"),
    ],
)
def test_a_stack_without_a_pool_says_what_to_do(aws: StandIn, here: Here, state: str, fix: str) -> None:
    """The endpoint does not answer, and the template does not list the remaining resources that cost money."""
    gone = "https://sqs.us-east-1.amazonaws.com/123456789012/gone.fifo"
    aws.deploy(outputs() | {"QueueUrl": gone, "DeadLetterQueueUrl": gone, "FleetGroup": GROUP}, state)
    found = here.json("status")
    assert (found["state"], fix in found["fix"]) == (state, True)
    assert {found[each] for each in ("fleet", "queue", "endpoint", "usd_hour", "usd_hour_total")} == {None}
    out = here("status").out
    assert f"us-east-1: {state}\n" in out
    assert fix in out
    assert "costs   " not in out


def test_instances_that_a_failed_deletion_left_are_shown(deployed: StandIn, here: Here) -> None:
    want(1)
    deployed.deploy(outputs() | {"FleetGroup": GROUP}, "DELETE_FAILED")
    assert "1 instance; wanted 1" in here("status").out


class Waits:
    """Replaces the pauses of `status --watch`: an instance starts in the first one, and Ctrl-C comes in the second."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == 2:
            raise KeyboardInterrupt
        want(1)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    waits = Waits()
    monkeypatch.setattr("cloudpar.cli.status.time", SimpleNamespace(sleep=waits))
    return waits


def test_a_watched_deployment_is_printed_until_ctrl_c(deployed: StandIn, here: Here, waits: Waits) -> None:
    out = here("status", "--watch", "--interval", "3", "--json").out
    assert [json.loads(line)["fleet"]["desired"] for line in out.splitlines()] == [0, 1]
    assert waits.seconds == [3.0, 3.0]


def test_a_watched_deployment_is_drawn_until_ctrl_c(
    deployed: StandIn, here: Here, waits: Waits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal shows only the last state
    terminal = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr("cloudpar.cli.status.console", lambda: terminal)
    here("status", "--watch")
    assert isinstance(terminal.file, io.StringIO)
    first, later = (
        terminal.file.getvalue().index(words) for words in ("0 instances; wanted 0", "1 instance; wanted 1")
    )
    assert first < later


def test_an_unknown_stack_is_an_error(aws: StandIn, here: Here) -> None:
    assert "there is no stack Cloudpar-staging in us-east-1" in here("status", "--env", "staging", code=5).err


def test_a_missing_permission_is_an_error(aws: StandIn, here: Here) -> None:
    aws.refusals["DescribeStacks"] = ("AccessDenied", "User is not authorized")
    err = here("status", code=8).err
    assert "may not call cloudformation:DescribeStacks" in err
    assert err.count("\n") == 1


def test_an_aws_that_does_not_answer_is_an_error(home: Any, monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("cloudpar.deployment.aws.ATTEMPTS", 1)
    assert "cloudformation does not answer in us-east-1" in here("status", code=8).err
