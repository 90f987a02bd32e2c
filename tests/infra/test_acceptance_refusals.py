"""infra/acceptance.sh starts only if it can pass, and only where nothing is lost."""

import pytest

from .checkout import HERE, Checkout


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ((), "add --region, such as eu-central-1, or set AWS_REGION"),
        (("--region",), "--region needs a value; the comment at the top of"),
        (("--help", ""), "unknown option --help; the comment at the top of"),
        ((*HERE, "--without", "destroy"), "there are map, interruption and idle"),
        ((*HERE, "--env", "prod"), "use dev or staging"),
    ],
)
def test_wrong_usage_is_refused(checkout: Checkout, options: tuple[str, ...], fix: str) -> None:
    code, output = checkout.run(*options)
    assert (code, output.count("\n")) == (2, 1)
    assert fix in output
    assert checkout.calls() == []


@pytest.mark.parametrize(
    ("program", "fix"), [(".venv/bin/cloudpar", 'run "make setup"'), ("tools/bin/aws", "install AWS's command line")]
)
def test_a_missing_program_is_named(checkout: Checkout, program: str, fix: str) -> None:
    checkout.remove(program)
    code, output = checkout.run(*HERE)
    assert (code, output.count("\n")) == (2, 1)
    assert fix in output


def test_a_stack_that_exists_is_left_alone(checkout: Checkout) -> None:
    checkout.state(stack="")
    code, output = checkout.run(AWS_REGION="eu-west-1")
    assert (code, output.count("\n")) == (2, 1)
    assert "choose another --env or --region" in output
    assert checkout.names() == ["cloudpar status"]


def test_no_stack_is_touched_if_aws_does_not_say_whether_it_exists(checkout: Checkout) -> None:
    checkout.answer(
        "cloudpar status", "echo 'Error: the AWS credentials have expired: run `aws configure`' >&2; exit 8"
    )
    code, output = checkout.run(*HERE)
    assert (code, output.count("\n")) == (2, 1)
    assert "Error: the AWS credentials have expired: run `aws configure`" in output
    assert checkout.names() == ["cloudpar status"]


def test_the_script_leaves_the_profile_of_its_user(checkout: Checkout) -> None:
    checkout.answer("cloudpar deploy", 'echo "$XDG_CONFIG_HOME" >config; exit 8')
    checkout.run(*HERE, XDG_CONFIG_HOME="/home/user/.config")
    assert (checkout.world / "config").read_text().endswith("/build/acceptance/config\n")
