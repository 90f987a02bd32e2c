import json
import os
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .failures import DeploymentError
from .project import BUNDLE, PLATFORM, Project

LAST_LINES = 5


class Cdk:
    """The CDK CLI on this project's app. What it writes goes to `show`, line by line, as it comes."""

    def __init__(self, project: Project, region: str, settings: Sequence[str], show: Callable[[str], None]) -> None:
        self._project = project
        self._settings = [part for setting in settings for part in ("-c", setting)]
        self._show = show
        self._environment = {
            **os.environ, "AWS_REGION": region, "AWS_DEFAULT_REGION": region, "CDK_DEFAULT_REGION": region,
            "UV": project.uv() or "uv",
            # What they say of newer versions would hide the last lines, which say what failed.
            "NO_COLOR": "1", "CDK_DISABLE_VERSION_CHECK": "1", "NPM_CONFIG_UPDATE_NOTIFIER": "false",
            # It is about a later Node.js than the one that is asked for here, and comes with every command.
            "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": "true",
        }  # fmt: skip
        self._cdk = project.cdk()

    def bundle(self) -> None:
        """Build the functions' code, unless a setting names a folder that holds it."""
        if not any(each.startswith("bundle=") for each in self._settings):
            self._run("building the functions", ["functions/bundle.sh", str(BUNDLE), PLATFORM])

    def synthesize(self, stack: str, folder: Path) -> dict[str, Any]:
        """Write the assembly, and return the stack's template."""
        self._run("cdk synth", [*self._cdk, "synth", stack, "--quiet", "--output", str(folder), *self._settings])
        path = folder / f"{stack}.template.json"
        try:
            template: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DeploymentError(
                f"cdk synth left no template of {stack}: {error}; run `npm ci` and try again"
            ) from None
        return template

    def bootstrap(self, account: str, region: str) -> None:
        """Make the CDK's own stack in an account and region: a bucket, a registry and roles, free while empty."""
        command = [*self._cdk, "bootstrap", f"aws://{account}/{region}", "--app", ""]
        self._run("cdk bootstrap", command)

    def deploy(self, stack: str, assembly: Path, outputs: Path) -> dict[str, str]:
        """Deploy what was synthesized, and return the stack's outputs."""
        self._run(
            "cdk deploy",
            [
                *self._cdk, "deploy", stack, "--app", str(assembly), "--require-approval", "never",
                "--progress", "events", "--ci", "--outputs-file", str(outputs),
            ],
        )  # fmt: skip
        try:
            found: Mapping[str, Any] = json.loads(outputs.read_text(encoding="utf-8"))
            return {str(key): str(value) for key, value in found[stack].items()}
        except (OSError, ValueError, KeyError) as error:
            raise DeploymentError(f"cdk deploy left no outputs of {stack} ({error!r}): run it again") from None

    def _run(self, name: str, command: Sequence[str]) -> None:
        last: deque[str] = deque(maxlen=LAST_LINES)
        try:
            child = subprocess.Popen(
                command, cwd=self._project.root, env=self._environment, text=True, errors="replace",
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
        except OSError as error:
            raise DeploymentError(f"{name}: {command[0]} cannot be run: {error.strerror}") from None
        with child:
            for line in child.stdout or ():
                text = line.rstrip()
                if text:
                    last.append(text)
                    self._show(text)
        if child.returncode:
            said = " / ".join(last) or "it said nothing"
            raise DeploymentError(f"{name} failed (exit status {child.returncode}): {said}")
