"""Runs the command line in processes of its own."""

import json
import os
import subprocess
import sys
from typing import Any

from support.waiting import HANG_S

CLOUDPAR = [sys.executable, "-m", "cloudpar"]


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without the user's configuration of Cloud Parallelizer."""
    return {name: value for name, value in os.environ.items() if not name.startswith("CLOUDPAR_")} | more


def cloudpar(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*CLOUDPAR, *arguments], env=environment(**more), capture_output=True, text=True, check=False, timeout=HANG_S
    )


def cloudpar_json(*arguments: str) -> Any:
    """Run a command that succeeds, and return the JSON object that it prints."""
    ended = cloudpar(*arguments, "--json")
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    assert ended.stdout.count("\n") == 1
    return json.loads(ended.stdout)
