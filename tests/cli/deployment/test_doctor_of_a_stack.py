"""`cloudpar doctor --stack` examines a deployment for its operator."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cli.deployment.conftest import outputs
from cli.deployment.stand_in import NAME, StandIn
from cli.here import Here
from cloudpar.deployment import profile
from cloudpar.deployment.profile import Profile
from support.fake_master import TOKEN, FakeMaster


@pytest.fixture
def well(deployed: StandIn) -> Iterator[FakeMaster]:
    """Deploy this release with an endpoint that answers."""
    there = json.loads((deployed.folder / "stack.json").read_text())
    record = {"Type": "AWS::SSM::Parameter", "Properties": {"Value": '{"maxInstances": "5"}'}}
    deployed.deployed = {"Resources": {**deployed.template["Resources"], "Settings": record}}
    with FakeMaster() as running:
        deployed.deploy(there["outputs"] | {"Endpoint": running.endpoint})
        yield running


def examine(here: Here, code: int = 0) -> dict[str, dict[str, Any]]:
    return {each["what"]: each for each in here.json("doctor", "--stack", NAME, code=code)["findings"]}


def test_a_healthy_deployment_is_ok(well: FakeMaster, here: Here) -> None:
    profile.write(Profile(well.endpoint, TOKEN))
    found = examine(here)
    names = ("Python", "stack", "settings", "master", "endpoint", "clock", "profile", "workers")
    assert {name: found[name]["verdict"] for name in names} == dict.fromkeys(names, "ok")
    assert found["settings"]["detail"] == "maxInstances=5"
    assert "0 instances; at most 4" in found["workers"]["detail"]
    assert well.seen["start_tasks"] == 0


def test_an_old_machine_image_is_noted(well: FakeMaster, deployed: StandIn, here: Here) -> None:
    assert "machine image" not in examine(here)
    deployed.machine_images = {"ami-1": datetime.now(UTC) - timedelta(days=40, hours=1)}
    found = examine(here)["machine image"]
    assert found["verdict"] == "note"
    assert "is 40 days old: run `cloudpar deploy --env dev" in found["detail"]


def test_the_pool_that_programs_use_instead_is_named(well: FakeMaster, here: Here) -> None:
    assert "programs here start pools on this machine" in examine(here)["profile"]["detail"]
    profile.write(Profile("https://other.example", TOKEN))
    found = examine(here)["profile"]
    assert found["verdict"] == "missing"
    assert "use https://other.example: `cloudpar deploy --activate`" in found["detail"]


def test_an_endpoint_that_does_not_answer_is_bad(deployed: StandIn, well: FakeMaster, here: Here) -> None:
    deployed.deploy(outputs("http://127.0.0.1:9"))
    found = examine(here, 1)
    assert found["endpoint"]["verdict"] == "bad"
    assert "http://127.0.0.1:9 does not answer this machine" in found["endpoint"]["detail"]
    assert found["master"]["verdict"] == "ok"


def test_a_failed_launch_has_awss_reason(deployed: StandIn, well: FakeMaster, here: Here) -> None:
    deployed.group = {"MaxSize": 4, "DesiredCapacity": 1, "Instances": []}
    deployed.activities = [
        {"Description": "Launching a new EC2 instance.", "StatusCode": "Failed", "StatusMessage": "No spot capacity."}
    ]
    found = examine(here, 1)["workers"]
    assert (found["verdict"], "AWS says: No spot capacity." in found["detail"]) == ("bad", True)


def test_an_account_function_that_fails_is_bad(deployed: StandIn, well: FakeMaster, here: Here) -> None:
    deployed.account_function = lambda _: RuntimeError("no table")
    found = examine(here, 1)["master"]
    assert (found["verdict"], "failed: no table" in found["detail"]) == ("bad", True)


def test_a_stack_of_an_earlier_release_keeps_no_settings(deployed: StandIn, well: FakeMaster, here: Here) -> None:
    deployed.deployed = deployed.template
    found = examine(here)["settings"]
    assert (found["verdict"], "cloudpar deploy --config FILE" in found["detail"]) == ("missing", True)


def test_a_stack_that_was_never_made_whole_says_what_to_do(deployed: StandIn, here: Here) -> None:
    deployed.deploy({}, "ROLLBACK_COMPLETE")
    found = examine(here, 1)
    assert "run `cloudpar destroy --env dev" in found["stack"]["detail"]
    assert "master" not in found


def test_an_unknown_stack_is_reported(aws: StandIn, here: Here) -> None:
    assert "there is no stack Cloudpar-dev in us-east-1" in examine(here, 1)["stack"]["detail"]


@pytest.mark.parametrize("other", [("--token", "t"), ("--endpoint", "http://127.0.0.1:9"), ("--data", "folder")])
def test_a_stack_beside_another_master_is_refused(aws: StandIn, here: Here, other: tuple[str, str]) -> None:
    assert f"leave out {other[0]}, or --stack" in here("doctor", "--stack", NAME, *other, code=2).err
