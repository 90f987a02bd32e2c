"""After an update, AWS replaces the instances that started before it; `cloudpar deploy` does not wait for that."""

from typing import Any

import pytest

from cli.deployment.conftest import GROUP, outputs
from cli.deployment.stand_in import StandIn
from cli.here import Here
from cloudpar.deployment.refresh import outdated
from support.fake_master import FakeMaster

ARM, X86 = "lt-arm", "lt-x86"


def version(template: str, number: int) -> dict[str, str]:
    return {"LaunchTemplateId": template, "LaunchTemplateName": template, "Version": str(number)}


def group(*instances: dict[str, str] | None) -> dict[str, Any]:
    """A group whose new instances get version 2, with instances of these templates."""
    overrides = [
        {"InstanceType": f"{name}.large", "LaunchTemplateSpecification": version(template, 2)}
        for name, template in (("c7g", ARM), ("c7i", X86))
    ]
    mixed = {"LaunchTemplateSpecification": version(ARM, 2), "Overrides": overrides}
    members = [
        {"InstanceId": f"i-{number}", "LifecycleState": "InService", "AvailabilityZone": "us-east-1a"}
        | ({} if each is None else {"LaunchTemplate": each})
        for number, each in enumerate(instances)
    ]
    policy = {"MixedInstancesPolicy": {"LaunchTemplate": mixed}}
    return {"Instances": members, "DesiredCapacity": len(members), "MaxSize": 4, **policy}


@pytest.fixture
def deploy(master: FakeMaster, aws: StandIn, here: Here) -> Any:
    """Deploys a stack with a fleet, and returns what the command says."""

    def run() -> str:
        aws.outputs = outputs(master.endpoint) | {"FleetGroup": GROUP}
        return " ".join(here("deploy", "--yes", "--no-first-map").err.split())

    return run


@pytest.mark.parametrize(
    ("found", "count"),
    [
        (group(), 0),
        (group(version(ARM, 2), version(X86, 2)), 0),
        (group(version(ARM, 1), version(X86, 2), version(X86, 1)), 2),
        (group(version("lt-before", 2), None), 2),
        ({"LaunchTemplate": version(ARM, 2), "Instances": [{"LaunchTemplate": version(ARM, 1)}]}, 1),
        ({"LaunchConfigurationName": "other", "Instances": [{}]}, 0),
    ],
)
def test_an_instance_is_outdated_if_new_ones_get_another_template(found: dict[str, Any], count: int) -> None:
    assert outdated(found) == count


def test_a_deployment_replaces_outdated_instances_and_does_not_wait(aws: StandIn, deploy: Any) -> None:
    aws.group = group(version(ARM, 1), version(X86, 2))
    assert "earlier image or configuration: 1. AWS replaces them now, new ones first" in deploy()
    (asked,) = aws.refreshes
    assert asked["AutoScalingGroupName"] == GROUP
    assert asked["Preferences"] == {
        "MinHealthyPercentage": 100, "MaxHealthyPercentage": 200, "InstanceWarmup": 120, "SkipMatching": True,
    }  # fmt: skip


def test_a_deployment_that_changes_no_instance_replaces_none(aws: StandIn, deploy: Any) -> None:
    aws.group = group(version(ARM, 2))
    assert "earlier image" not in deploy()
    assert aws.refreshes == []


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("InstanceRefreshInProgress", "AWS is still replacing instances after the deployment before"),
        ("AccessDenied", "may not call autoscaling:StartInstanceRefresh"),
    ],
)
def test_a_deployment_whose_instances_cannot_be_replaced_says_so_and_succeeds(
    aws: StandIn, deploy: Any, code: str, said: str
) -> None:
    aws.group = group(version(ARM, 1))
    aws.refusals["StartInstanceRefresh"] = (code, "no")
    assert said in deploy()
