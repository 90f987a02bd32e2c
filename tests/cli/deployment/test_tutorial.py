"""The commands of the AWS tutorial, run in the order of the page on one account."""

import shlex
from pathlib import Path

import pytest

from cli.deployment.stand_in import StandIn
from cli.here import Here, Printed
from cloudpar.deployment import profile
from docs.pages import ROOT, blocks
from support.fake_master import FakeMaster

PAGE = ROOT / "docs/tutorials/aws.md"
REGION = "us-east-1"
"""The stand-in's region. The page deploys to another one."""

COMMANDS = [line for block in blocks(PAGE) if block.language == "sh" for line in block.text.splitlines()]
ASKS = {"deploy", "destroy"}


def test_the_commands_make_show_and_delete_a_pool(
    master: FakeMaster, aws: StandIn, project: Path, monkeypatch: pytest.MonkeyPatch, here: Here
) -> None:
    monkeypatch.setattr("cloudpar.cli.destroy.LOOK_S", 0.0)
    (project / "tasks.txt").write_text("numpy\n")
    assert [shlex.split(line)[1] for line in COMMANDS] == ["deploy", "deploy", "status", "account", "destroy"]
    printed: list[Printed] = []
    for line in COMMANDS:
        arguments = shlex.split(line.replace("eu-central-1", REGION))[1:]
        if arguments[0] in ASKS:
            arguments.append("--yes")  # the reader's answer
        printed.append(here(*arguments))
        assert (profile.read() is None) == (arguments[0] == "destroy")
    assert master.seen["start_tasks"] == 2
    assert any("requirements" in each.err for each in printed)
