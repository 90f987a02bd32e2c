"""The contents of the image that worker/Dockerfile builds, in a folder: from the same files, by the same script."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACT = json.loads((ROOT / "infra/lib/contract.json").read_text())
USER = 10001
"""The user id that the entry point takes."""

BUILD_S = 300.0
"""Only a hang takes this long."""

_CONTEXT = "import {{ buildContext }} from '{}'; console.log(buildContext({}));"


class Image:
    """The image's contents below a folder, with interpreters of this machine.

    Args:
        folder: An empty folder that every user may enter.
        requirements: A user's requirements file, as `-c requirements=FILE` names it.
    """

    def __init__(self, folder: Path, requirements: Path) -> None:
        self.pythons = folder / "python"
        self._bin = folder / "bin"
        self._bin.mkdir()
        context = self._context(folder / "context", requirements)
        self.entrypoint = context / "worker" / "entrypoint.py"
        self.versions = [version for version in CONTRACT["pythons"] if self._find(version, folder)]
        build = ("build", "--quiet", "--wheel", "--no-build-isolation", "--python", sys.executable)
        self._run(_uv(), *build, "--out-dir", str(folder / "wheel"), str(context))
        (wheel,) = (folder / "wheel").glob("*.whl")
        user = context / "user" / "requirements.txt"
        self.log = self._run(
            str(context / "worker" / "install.sh"), str(self.pythons), str(wheel), str(user), *self.versions
        )

    @property
    def newest(self) -> str:
        """The interpreter on which the entry point runs."""
        return str(self.pythons / self.versions[-1] / "bin" / "python")

    def _context(self, folder: Path, requirements: Path) -> Path:
        """The build context, as the stack makes it."""
        script = _CONTEXT.format(ROOT / "infra/lib/worker-image.ts", json.dumps(str(requirements)))
        made = Path(self._run(str(ROOT / "node_modules/.bin/tsx"), "--eval", script).strip())
        made.chmod(0o755)
        return Path(shutil.move(made, folder))

    def _find(self, version: str, folder: Path) -> bool:
        """Put an interpreter of this version on the path of install.sh, if the machine has one."""
        asked = (_uv(), "python", "list", "--only-installed", "--output-format", "json", version)
        found = [each["path"] for each in json.loads(self._run(*asked))]
        usable = next((Path(python) for python in found if _is_usable(python)), None)
        if usable is None and found:
            usable = self._move(found[0], folder / "interpreters" / version)
        if usable is not None:
            (self._bin / f"python{version}").symlink_to(usable)
        return usable is not None

    def _move(self, python: str, to: Path) -> Path:
        """Copy an interpreter to where the worker's user may enter, as the image does."""
        prefix = Path(self._run(python, "-I", "-c", "import sys; print(sys.base_prefix)").strip())
        shutil.copytree(prefix, to, symlinks=True, copy_function=link)
        return to / "bin" / f"python{to.name}"

    def _run(self, *command: str) -> str:
        path = os.pathsep.join([str(self._bin), str(Path(_uv()).parent), os.environ["PATH"]])
        environment = os.environ | {"PATH": path, "UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=BUILD_S
        )
        assert ended.returncode == 0, f"{command}: exit status {ended.returncode}\n{ended.stderr[-5000:]}"
        return ended.stdout


def _uv() -> str:
    return str(Path(sys.executable).parent / "uv")


def _is_usable(python: str) -> bool:
    """Whether the worker's user may run an interpreter. Without root, that is the user who runs the tests."""
    user = USER if os.geteuid() == 0 else None
    with suppress(PermissionError):
        return subprocess.run([python, "-I", "-c", ""], check=False, cwd="/", user=user, group=user).returncode == 0
    return False


def link(source: str, target: str) -> None:
    """Link a file, or copy it from another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
