import json
import os
import re
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .failures import CdkFailed, DeploymentError
from .project import BUNDLE, PLATFORM, Project

LAST_LINES = 5
"""How many lines of a failed tool's output the error shows. Stack frames are left out, because they hide the message.
"""

_FRAME = re.compile(r"^\s+at |node internals|node:internal")


class Cdk:
    """Runs the CDK CLI on a project's app, and passes each line of its output to `show` as it appears.

    A method raises CdkFailed if its command fails, and DeploymentError if the command cannot be run.
    """

    def __init__(self, project: Project, region: str, settings: Sequence[str], show: Callable[[str], None]) -> None:
        self._project = project
        self._settings = [part for setting in settings for part in ("-c", setting)]
        self._show = show
        self._environment = {
            **os.environ, "AWS_REGION": region, "AWS_DEFAULT_REGION": region, "CDK_DEFAULT_REGION": region,
            "UV": project.uv() or "uv",
            # Without these variables, notices of newer versions would hide the last lines of output, which say what
            # failed.
            "NO_COLOR": "1", "CDK_DISABLE_VERSION_CHECK": "1", "NPM_CONFIG_UPDATE_NOTIFIER": "false",
            # Without this variable, every command would print a warning about future requirements on the version of
            # Node.js.
            "AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED": "true",
        }  # fmt: skip
        self._cdk = project.cdk()

    def bundle(self) -> None:
        """Build the functions' code, unless a setting names a folder that contains the code."""
        if not any(each.startswith("bundle=") for each in self._settings):
            self._run("building the functions", ["functions/bundle.sh", str(BUNDLE), PLATFORM])

    def synthesize(self, stack: str, folder: Path) -> dict[str, Any]:
        """Write the cloud assembly to a folder, and return the stack's template.

        Raises:
            DeploymentError: The command failed, or the assembly has no readable template of this stack.
        """
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
        """Create or update the CDK's own stack: a bucket, a registry and roles.

        The bucket and the registry cost nothing while they are empty.
        """
        command = [*self._cdk, "bootstrap", f"aws://{account}/{region}", "--app", ""]
        self._run("cdk bootstrap", command)

    def deploy(self, stack: str, assembly: Path, *method: str) -> None:
        """Create or update a stack from a synthesized assembly. `method` are further options of `cdk deploy`."""
        options = ["--app", str(assembly), "--require-approval", "never", "--progress", "events", "--ci"]
        self._run("cdk deploy", [*self._cdk, "deploy", stack, *options, *method])

    def prepare(self, stack: str, assembly: Path, change_set: str) -> None:
        """Upload the files of a stack, and create a change set if something changes. The stack stays unchanged."""
        self.deploy(stack, assembly, "--method", "prepare-change-set", "--change-set-name", change_set)

    def execute(self, stack: str, assembly: Path, change_set: str) -> None:
        """Execute a prepared change set."""
        self.deploy(stack, assembly, "--method", "execute-change-set", "--change-set-name", change_set)

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
                    self._show(text)
                if text and not _FRAME.search(text):
                    last.append(text)
        if child.returncode:
            said = " / ".join(last) or "it said nothing"
            raise CdkFailed(f"{name} failed (exit status {child.returncode}): {said}", name)
