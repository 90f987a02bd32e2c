"""infra/acceptance.sh fails if the pool is not deleted whole, or if AWS does not say whether it is."""

import re

import pytest

from .checkout import HERE, LOOKS, NO_INTERRUPTION, RESOURCES, Checkout


def test_a_deletion_that_fails_is_tried_again(checkout: Checkout) -> None:
    checkout.state(idle="")
    checkout.answer("cloudpar destroy", "[[ -e again ]] && rm stack || { touch again; exit 8; }")
    code, output = checkout.run(*NO_INTERRUPTION)
    assert code == 1
    assert "acceptance: destroy: FAILED" in output
    assert "acceptance: destroy: ok" in output
    assert "acceptance: leftovers: ok" in output
    checkout.assert_deleted()


def test_a_deletion_that_fails_twice_names_the_command(checkout: Checkout) -> None:
    checkout.state(idle="")
    checkout.answer("cloudpar destroy", "exit 8")
    code, output = checkout.run(*NO_INTERRUPTION)
    assert code == 1
    assert output.endswith("acceptance: delete it by hand: cloudpar destroy --env dev --region eu-west-1\n")
    assert checkout.names().count("cloudpar destroy") == 2


def test_every_resource_that_is_left_is_named(checkout: Checkout) -> None:
    checkout.state(idle="")
    for call in [*LOOKS, "aws iam get-role"]:
        checkout.answer(call, "echo kept")
    code, output = checkout.run(*NO_INTERRUPTION)
    assert code == 1
    found = {line.split()[1] for line in output.splitlines() if line.startswith("left: ")}
    assert found == set(RESOURCES)
    assert "passed" not in output


@pytest.mark.parametrize(
    ("denied", "unknown"),
    [([*LOOKS, "aws iam get-role"], set(RESOURCES)), (["aws ec2 describe-instances"], {next(iter(RESOURCES))})],
)
def test_a_resource_of_which_aws_says_nothing_may_be_left(
    checkout: Checkout, denied: list[str], unknown: set[str]
) -> None:
    checkout.state(idle="")
    for call in denied:
        checkout.answer(call, "missing AccessDeniedException")
    code, output = checkout.run(*NO_INTERRUPTION)
    assert code == 1
    assert set(re.findall(r"^unknown: (\S+) .*AccessDenied", output, re.MULTILINE)) == unknown


@pytest.mark.parametrize(
    ("call", "answer", "found"),
    [
        ("aws ec2 describe-instances", "echo i-2", "left: AWS::AutoScaling::AutoScalingGroup i-2"),
        ("aws iam delete-role", "exit 254", "left: AWS::IAM::Role cloudpar-acceptance-dev"),
        ("aws cloudformation list-stack-resources", "exit 254", "AWS has not listed the resources of Cloudpar-dev"),
    ],
)
def test_a_leak_is_no_success(checkout: Checkout, call: str, answer: str, found: str) -> None:
    checkout.answer(call, f"if [[ $* == *--instance-ids* ]]; then touch ends; echo terminated; else {answer}; fi")
    code, output = checkout.run(*HERE)
    assert code == 1
    assert found in output
    assert "acceptance: destroy: ok" in output
    assert "passed" not in output


def test_what_aws_deletes_a_little_later_is_no_leak(checkout: Checkout) -> None:
    checkout.state(idle="")
    checkout.answer("aws ec2 describe-vpcs", "[[ -e later ]] && missing InvalidVpcID.NotFound; touch later; echo vpc-1")
    assert checkout.run(*NO_INTERRUPTION)[0] == 0
