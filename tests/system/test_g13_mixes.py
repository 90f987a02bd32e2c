"""The acceptance tests of 0.1.0: its SDK and worker on today's master, and today's on its master."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantees.scale import Scale
from system.mixture import TODAY, Mixture, unpack

ACCEPTANCE = ["tests/system", "tests/sdk/test_embedded.py", "tests/sdk/test_references.py"]
SLOWER = ["tests/cli/test_up.py", "tests/examples"]
STARTERS = ["tests/cli/operation.py", "examples/cluster.py"]
"""What starts workers by their command."""


def let_tasks_write_anywhere(starter: Path) -> None:
    """Its tests count on it, and workers of 0.1.0 let them; one of today has to be told."""
    text = starter.read_text()
    command = '"--executors", str(executors)'
    assert text.count(command) == 1
    starter.write_text(text.replace(command, command + ', "--isolation", "own"'))


def read_the_token_from_its_file(test: Path) -> None:
    """`up` of 0.1.0 printed it into a pipe, too; today's prints it at a terminal only."""
    text = test.read_text()
    printed = 'exported["CLOUDPAR_TOKEN"]'
    assert text.count(printed) == 1
    read = '__import__("json").loads((folder / "connection.json").read_bytes())["token"]'
    test.write_text(text.replace(printed, read))


def take_notes_on_errors(test: Path) -> None:
    """Today's client says on an exception which task it belongs to; pytest matches that text, too."""
    text = test.read_text()
    ending = "base 10: 'x'$"
    assert text.count(ending) == 1
    test.write_text(text.replace(ending, ending[:-1]))


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("master_is_old", [False, True], ids=["old clients", "old master"])
def test_it_mixes(master_is_old: bool, tmp_path: Path, scale: Scale, reached: Callable[[str], None]) -> None:
    old = unpack("0.1.0", tmp_path / "old")
    if master_is_old:
        for starter in STARTERS:
            let_tasks_write_anywhere(old.root / starter)
        read_the_token_from_its_file(old.root / "tests/cli/test_up.py")
        take_notes_on_errors(old.root / "tests/sdk/test_references.py")
    mixture = Mixture(TODAY, TODAY, old) if master_is_old else Mixture(old, old, TODAY)
    python = mixture.interpreter(tmp_path / "mixture")
    quietly = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [str(python), "-m", "pytest", *quietly, *ACCEPTANCE, *scale([], SLOWER)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLOUDPAR_"))}
    ended = subprocess.run(command, cwd=old.root, env=clean, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-5_000:] + ended.stderr[-2_000:]
    # They all have to: none of them may be skipped, or be expected to fail.
    passed = re.fullmatch(r"(\d+) passed in .*", ended.stdout.splitlines()[-1])
    assert passed is not None, ended.stdout[-5_000:]
    mixture.check(tmp_path / "mixture")
    sides = "SDK and worker of today, master of 0.1.0" if master_is_old else "SDK and worker of 0.1.0, master of today"
    reached(f"{sides}: {passed[1]} acceptance tests of 0.1.0 pass")
