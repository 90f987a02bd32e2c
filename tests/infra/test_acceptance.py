"""The script infra/acceptance.sh, on fakes of AWS and of the command line."""

import json
import re
import signal
from typing import Any

import jmespath  # type: ignore[import-untyped]
import pytest
from botocore import xform_name
from botocore.session import Session
from click import Context, Group

from cloudpar.cli.application import application
from support.waiting import HANG_S, await_file

from .checkout import ACCOUNT, DESTROY, HERE, NO_INTERRUPTION, Checkout

GROUP: Group = application

DEPLOY = ["cloudpar status", "cloudpar deploy"]
MAP = ["map 200"]
EXPERIMENT = [
    "cloudpar status", "aws iam create-role", "aws iam put-role-policy", "aws fis create-experiment-template",
    "aws fis start-experiment", "aws fis get-experiment",
]  # fmt: skip
REMOVE_EXPERIMENT = [
    "aws fis delete-experiment-template", "aws iam get-role", "aws iam delete-role-policy", "aws iam delete-role",
]  # fmt: skip
INTERRUPTION = [*EXPERIMENT, "map 600", "aws ec2 describe-instances", *REMOVE_EXPERIMENT]
IDLE = ["cloudpar status", "cloudpar status"]
BEFORE = [*DEPLOY, *MAP]

FAILS = "touch interrupted ends; printf 'failed\\tdenied\\n'"
"""The map succeeds without the interruption, and the idle instance ends later."""
ALWAYS_RUNS = "if [[ $* == *--instance-ids* ]]; then echo running; fi"
HANGS = "trap 'touch ended; exit 143' TERM; sleep 30 & touch hangs; wait"


def test_all_steps_run_in_order(checkout: Checkout) -> None:
    code, output = checkout.run(*HERE, CLOUDPAR_ENDPOINT="https://another.example", CLOUDPAR_PROFILE="another")
    steps = re.findall(r"^acceptance: (\w+): ok, \d+ s$", output, re.MULTILINE)
    assert steps == ["deploy", "map", "interruption", "idle", "destroy", "leftovers"]
    assert output.endswith("acceptance: all steps passed\n")
    assert code == 0
    before = [*DEPLOY, *MAP, *INTERRUPTION, *IDLE]
    assert checkout.names()[: len(before)] == before
    checkout.assert_deleted()


def test_aws_and_cloudpar_know_each_command_and_its_options(checkout: Checkout) -> None:
    checkout.run(*HERE, "--set", "zones=2")
    models = Session()
    for program, name, *arguments in checkout.calls():
        if program == "cloudpar":
            found = GROUP.commands[name].make_context(name, arguments, parent=Context(GROUP)).params
            assert (found["environment"], found["region"], found["as_json"]) == ("dev", "eu-west-1", True)
            assert name != "deploy" or found["settings"] == ("maxInstances=2", "zones=2")
        elif program == "aws":
            assert_known(models.get_service_model({"s3api": "s3"}.get(name, name)), *arguments)


def assert_known(service: Any, call: str, *arguments: str) -> None:
    """Assert that AWS's model of a service has a call and its options, and that its query can be read."""
    (operation,) = (each for each in service.operation_names if xform_name(each, "-") == call)
    known = {xform_name(each, "-") for each in service.operation_model(operation).input_shape.members}
    options = {each.removeprefix("--") for each in arguments if each.startswith("--")}
    assert options <= known | {"output", "query"}
    if "query" in options:
        jmespath.compile(arguments[arguments.index("--query") + 1])


def test_the_interrupted_instance_is_a_spot_instance(checkout: Checkout) -> None:
    checkout.run(*HERE)
    (call,) = (each for each in checkout.calls() if "create-experiment-template" in each)
    targets = json.loads(call[call.index("--targets") + 1])
    assert targets["one"]["resourceArns"] == [f"arn:aws:ec2:eu-west-1:{ACCOUNT}:instance/i-1"]


@pytest.mark.parametrize(
    ("step", "call", "answer", "began"),
    [
        ("deploy", "cloudpar deploy", "touch stack; exit 8", DEPLOY),
        ("interruption", "aws iam create-role", "exit 254", BEFORE + EXPERIMENT[:2]),
        ("interruption", "aws fis create-experiment-template", "exit 254", BEFORE + EXPERIMENT[:4]),
        ("interruption", "aws fis start-experiment", "exit 254", BEFORE + EXPERIMENT[:5]),
        ("interruption", "aws fis get-experiment", FAILS, BEFORE + EXPERIMENT),
        ("interruption", "aws ec2 describe-instances", ALWAYS_RUNS, BEFORE + EXPERIMENT),
    ],
)
def test_a_step_that_fails_is_the_last_before_the_pool_is_deleted(
    checkout: Checkout, step: str, call: str, answer: str, began: list[str]
) -> None:
    checkout.answer(call, answer)
    code, output = checkout.run(*HERE)
    assert code == 1
    assert f"acceptance: {step}: FAILED after" in output
    assert "acceptance: leftovers: ok" in output
    assert "passed\n" not in output.replace("not all steps have passed\n", "")
    assert checkout.names()[: len(began)] == began
    assert not (checkout.world / "role").exists()
    checkout.assert_deleted()
    checkout.await_end_of_maps()


@pytest.mark.parametrize(
    ("options", "state"),
    [
        (NO_INTERRUPTION, {"charged": "0.9"}),
        (NO_INTERRUPTION, {"results": "199"}),
        ((*HERE, "--without", "map"), {"results": "599"}),
    ],
)
def test_a_map_that_loses_results_or_charge_fails(
    checkout: Checkout, options: tuple[str, ...], state: dict[str, str]
) -> None:
    checkout.state(**state)
    code, output = checkout.run(*options)
    assert code == 1
    assert "AssertionError: " in output
    checkout.assert_deleted()


def test_a_fleet_that_is_never_seen_idle_fails(checkout: Checkout) -> None:
    checkout.answer("cloudpar status", "if [[ -e stack ]]; then exit 8; else exit 5; fi")
    code, output = checkout.run(*NO_INTERRUPTION)
    assert code == 1
    assert "acceptance: idle: FAILED" in output
    checkout.assert_deleted()


def test_steps_can_be_left_out(checkout: Checkout) -> None:
    code, output = checkout.run(
        *HERE, *(part for step in ("map", "interruption", "idle") for part in ("--without", step))
    )
    assert code == 0
    assert output.endswith("acceptance: all steps passed, without map interruption idle\n")
    assert checkout.names()[: len(DEPLOY + DESTROY)] == DEPLOY + DESTROY
    assert "--no-first-map" in checkout.calls()[1]


def test_a_deployment_that_creates_no_stack_deletes_none(checkout: Checkout) -> None:
    checkout.answer("cloudpar deploy", "echo 'Error: bootstrap: denied' >&2; exit 8")
    code, output = checkout.run(*HERE)
    assert code == 1
    assert "Error: bootstrap: denied" in output
    assert "acceptance: there is no Cloudpar-dev to delete" in output
    assert checkout.names() == [*DEPLOY, "cloudpar status"]


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize(
    ("call", "answer"),
    [("cloudpar deploy", f"touch stack; {HANGS}"), ("aws fis start-experiment", HANGS)],
)
def test_a_signal_ends_the_running_step_and_deletes_the_pool(
    checkout: Checkout, number: signal.Signals, expected: int, call: str, answer: str
) -> None:
    checkout.answer(call, answer)
    with checkout.start(*HERE) as process:
        await_file(checkout.world / "hangs")
        process.send_signal(number)
        output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == expected, output
    assert "acceptance: leftovers: ok" in output
    checkout.assert_deleted()
    assert not (checkout.world / "role").exists()
    assert (checkout.world / "ended").exists()
    checkout.await_end_of_maps()
