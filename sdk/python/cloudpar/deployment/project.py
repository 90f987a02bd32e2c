"""Finds the source checkout from which a deployment is made, and the tools that the deployment needs."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from cloudpar.errors import ConfigurationError

CDK = "2.1148.1"
"""The version of the CDK CLI that deploys. npm's newest version may be unable to read the app."""

NODE = 20, 11
BUNDLE = Path("build/functions")
PLATFORM = "aarch64-manylinux2014"
ANSWER_S = 60.0


class Project:
    """A checkout of Cloud Parallelizer."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def tool(self, name: str) -> str | None:
        """Return the path of the executable `name` on the PATH; None if there is none."""
        return shutil.which(name)

    def answer(self, command: Sequence[str]) -> str | None:
        """Return the first line that a command prints; None if it fails or takes longer than ANSWER_S seconds."""
        text = self.output(command)
        return None if text is None else text.strip().partition("\n")[0].rstrip()

    def output(self, command: Sequence[str]) -> str | None:
        """Return the standard output of a command; None if it fails or takes longer than ANSWER_S seconds."""
        try:
            ended = subprocess.run(
                command, cwd=self.root, capture_output=True, text=True, check=False, timeout=ANSWER_S
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return ended.stdout if ended.returncode == 0 else None

    def cdk(self) -> list[str]:
        """Return the command line of the CDK CLI of version CDK: an installed one, or npx, which downloads it."""
        for path in (self.root / "node_modules/.bin/cdk", self.tool("cdk")):
            if path is not None and (self.answer([str(path), "--version"]) or "").split(" ")[0] == CDK:
                return [str(path)]
        return ["npx", "--yes", f"aws-cdk@{CDK}"]

    def uv(self) -> str | None:
        """Return the path of uv, which bundles the functions; None if neither .venv nor the PATH has it."""
        own = self.root / ".venv/bin/uv"
        return str(own) if own.exists() else self.tool("uv")

    def has_packages(self) -> bool:
        """Return whether `npm ci` has been run."""
        return (self.root / "node_modules/aws-cdk-lib").is_dir()


def find_project(named: Path | None) -> Project:
    """Find the checkout of this project.

    If the caller names a folder, the function tries only this folder. Otherwise the function tries the working folder
    and all its parents, and then the folder of this file and all its parents.

    Raises:
        ConfigurationError: None of these folders is a checkout.
    """
    here = Path(__file__).resolve()
    candidates = [named] if named is not None else [Path.cwd(), *Path.cwd().parents, *here.parents]
    for folder in candidates:
        if _is_project(folder):
            return Project(folder.resolve())
    where = f"{named} holds no" if named is not None else "neither the working folder nor one above it holds a"
    raise ConfigurationError(
        f"{where} Cloud Parallelizer to deploy (cdk.json and infra/): clone the repository, then run this in it or "
        "name it by --project"
    )


def _is_project(folder: Path) -> bool:
    try:
        app = json.loads((folder / "cdk.json").read_text(encoding="utf-8")).get("app", "")
    except (OSError, ValueError, AttributeError):
        return False
    return "infra/" in app
