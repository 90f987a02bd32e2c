"""`cloudpar account ... --stack`: the operator by IAM."""

import json
from hashlib import sha256

import pytest

from cli.deployment.conftest import outputs
from cli.deployment.stand_in import NAME, StandIn
from cloudpar.cli.application import run


@pytest.fixture
def deployed(aws: StandIn) -> StandIn:
    """A stack."""
    aws.deploy(outputs())
    return aws


def test_create(deployed: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    """As the stack's output CreateFirstAccount says."""
    assert run(["account", "create", "ada", "--hours", "10", "--stack", NAME]) == 0
    out = capsys.readouterr().out
    assert "export CLOUDPAR_ENDPOINT=https://pool.example" in out
    token = out.partition("CLOUDPAR_TOKEN=")[2].strip()
    assert deployed.token_hashes == [sha256(token.encode()).hexdigest()]
    assert deployed.accounts[0].granted_us == 36_000_000_000


def test_list(deployed: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["account", "create", "ada", "--quota", "1h", "--stack", NAME]) == 0
    capsys.readouterr()
    assert run(["account", "list", "--stack", NAME, "--json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["accounts"]] == ["ada"]


@pytest.mark.parametrize("arguments", [["grant", "a9", "10h"], ["revoke", "a9"]])
def test_what_the_master_refuses(deployed: StandIn, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(["account", *arguments, "--stack", NAME]) == 5
    assert capsys.readouterr().err == "cloudpar: error: no account a9\n"


def test_not_allowed(deployed: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    deployed.refusals["Invoke"] = ("AccessDeniedException", "no")
    assert run(["account", "list", "--stack", NAME]) == 8
    assert "may not call lambda:Invoke" in capsys.readouterr().err


def test_no_such_stack(aws: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["account", "list", "--stack", "Cloudpar-nobody", "--region", "eu-west-1"]) == 5
    assert "no stack Cloudpar-nobody in eu-west-1" in capsys.readouterr().err


def test_a_stack_without_the_function(aws: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    aws.deploy({}, "ROLLBACK_COMPLETE")
    assert run(["account", "list", "--stack", NAME]) == 5
    assert "has no output AccountFunction" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["account", "list", "--stack", NAME, "--data", "."], "--stack and --data"),
        (["account", "create", "x", "--hours", "1", "--quota", "1h", "--stack", NAME], "only one of them"),
        (["account", "create", "x", "--hours", "-1", "--stack", NAME], "--hours"),
    ],
)
def test_what_contradicts_itself(
    aws: StandIn, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 2
    assert words in capsys.readouterr().err
