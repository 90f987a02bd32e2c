"""A reader who follows a tutorial sees the output that it shows.

Installations (pip, npm) and `ssh` need other machines, so their lines are only compared with the project.
`cli/deployment/test_tutorial.py` runs the commands of the AWS tutorial on a stand-in for AWS's control plane, and
`e2e/test_tutorial.py` its program on a deployment.
"""

import shlex
import tomllib
from pathlib import Path

import pytest

from docs.pages import ROOT, TUTORIALS, blocks
from docs.reader import Reader
from docs.test_examples import parse
from support import javascript_package

NAMES = {path.name for path in TUTORIALS}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def test_there_are_four_tutorials() -> None:
    assert {"laptop.md", "several-machines.md", "aws.md", "javascript.md"} == NAMES


@pytest.mark.parametrize("name", ["laptop.md", "several-machines.md", "aws.md"])
def test_a_reader_of_python_sees_what_the_page_shows(name: str, tmp_path: Path) -> None:
    own = {"CLOUDPAR_ENDPOINT": "local"} if name == "aws.md" else {}  # instead of the pool in the profile file
    with Reader(ROOT / "docs/tutorials" / name, tmp_path, **own) as reader:
        assert reader.follow() > 0


def test_a_reader_of_javascript_sees_what_the_page_shows(tmp_path: Path) -> None:
    (tmp_path / "node_modules/@cloudpar").mkdir(parents=True)
    (tmp_path / "node_modules/@cloudpar/sdk").symlink_to(javascript_package.built())
    with Reader(ROOT / "docs/tutorials/javascript.md", tmp_path) as reader:
        assert reader.follow() > 0


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.name)
def test_commands_that_are_not_run_are_right(page: Path) -> None:
    for block in blocks(page):
        for line in block.text.splitlines() if block.language == "sh" else ():
            match shlex.split(line):
                case ["python3", "-m", "venv", ".venv"] | [".", ".venv/bin/activate"]:
                    continue
                case ["pip", "install", copy]:
                    folder, _, extra = copy.rstrip("]").partition("[")
                    assert folder == "/path/to/cloud-parallelizer"
                    assert extra in {"", *EXTRAS}
                case ["npm", "ci"] | ["npm", "install", "FILE"]:
                    assert (ROOT / "package-lock.json").is_file()
                case ["npm", "pack", "--workspace", folder]:
                    assert (ROOT / folder / "package.json").is_file()
                case ["ssh", "-N", "-L", forward, "you@first-machine"]:
                    assert forward == "8642:127.0.0.1:8642"
                case ["cloudpar", *arguments]:
                    parse(arguments)
                case _:
                    raise AssertionError(line)
