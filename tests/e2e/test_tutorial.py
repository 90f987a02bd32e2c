"""The AWS tutorial on a deployment: its program, and the commands that show the pool."""

import re
import shlex
from pathlib import Path

from docs.pages import ROOT, blocks
from support.command import CLOUDPAR, environment
from support.customer import Customer

from .deployment import Deployment, run
from .stand_in import REGION

PAGE = blocks(ROOT / "docs/tutorials/aws.md")
LOOKS = {"status", "account"}


def test_its_program_runs_on_the_deployment(cluster: Deployment, tmp_path: Path) -> None:
    (program,) = [block.text for block in PAGE if block.language == "python"]
    (session,) = [block.text for block in PAGE if block.language == "console"]
    script = tmp_path / "pi.py"
    script.write_text(program, encoding="utf-8")
    own = {"CLOUDPAR_ENDPOINT": cluster.endpoint, "CLOUDPAR_TOKEN": Customer(cluster, "tutorial").token}
    printed = run([CLOUDPAR[0], str(script)], environment(**own))
    assert printed.splitlines()[-1] == session.splitlines()[-1]


def test_its_commands_show_the_deployment(deployment: Deployment) -> None:
    lines = [line for block in PAGE if block.language == "sh" for line in block.text.splitlines()]
    looks = [line for line in lines if shlex.split(line)[1] in LOOKS]
    assert {shlex.split(line)[1] for line in looks} == LOOKS
    for line in looks:
        arguments = shlex.split(re.sub(r"--region \S+", f"--region {REGION}", line))[1:]
        assert run([*CLOUDPAR, *arguments], deployment.aws.environment)
