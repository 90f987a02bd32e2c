"""Systems of two releases: the SDK's process runs one, and masters and workers run either."""

import json
import runpy
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LAST_OF = {"0.1.0": "b82d0118", "0.2.0": "f76d7c74", "0.3.0": "be4ccef7"}
"""Each release's last commit without changes for the next release's messages."""

_WHENCE = """import cloudpar_protocol, {module}, json
print(json.dumps([cloudpar_protocol.__version__, cloudpar_protocol.__file__, {module}.__file__]))
"""
_STAND_IN = """import os, pathlib, subprocess, sys
folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
users = os.pathsep.join(x for x in folders if x and not list(pathlib.Path(x).glob("cloudpar*")))
os.environ["PYTHONPATH"] = users
started = subprocess.run([{python!r}, "-P", "-c", {whence!r}], stdout=subprocess.PIPE, check=True).stdout
pathlib.Path({started!r}).write_bytes(started)
os.execv({python!r}, [{python!r}, "-P", "-m", {module!r}, *sys.argv[1:]])
"""
"""Records whose code it runs, then runs it. The SDK's process takes the folders of its own code for a user's project,
since they are not installed, and names them in PYTHONPATH; with them, workers would have another release's messages."""

_EARLIER_TOKENS = (
    "import cloudpar_protocol.tokens as tokens; tokens.new_token = lambda: __import__('secrets').token_urlsafe(32)\n"
)
"""A pool of today starts a master of today. Only in a mixture it starts an earlier one, to which it would not send a
token of today's form over plain HTTP. Python runs this line of a .pth file when it starts."""


class Release(NamedTuple):
    """The code of a release."""

    name: str
    root: Path

    def folders(self, *names: str) -> list[Path]:
        """Return the folders from which some of its packages are imported."""
        return [self.root / name for name in ("sdk/protocol", *names)]

    @property
    def version(self) -> str:
        """Return the version that its code states."""
        return str(runpy.run_path(str(self.root / "sdk/protocol/cloudpar_protocol/version.py"))["__version__"])


TODAY = Release("today", ROOT)


def unpack(version: str, folder: Path) -> Release:
    """Extract the code of an earlier release from the git history."""
    command = ["git", "archive", LAST_OF[version]]
    try:
        packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        text = f"the history has no {version} ({error.stderr.decode()}): git fetch --unshallow"
        raise AssertionError(text) from None
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    (folder / "node_modules").symlink_to(ROOT / "node_modules")  # a test builds the release's SDK for JavaScript
    return Release(version, folder)


class Mixture(NamedTuple):
    """The release of each part."""

    sdk: Release
    worker: Release
    master: Release

    def interpreter(self, folder: Path) -> Path:
        """Make a Python with one release's SDK and today's dependencies; it starts masters and workers of others."""
        stand_ins = folder / "stand-ins"
        for module, release in (("cloudpar_worker", self.worker), ("cloudpar_master", self.master)):
            python = _interpreter(folder / module, release.folders("sdk/python", "worker", "functions"))
            package = stand_ins / module
            package.mkdir(parents=True)
            started = str(folder / f"{module}-started")
            whence = _WHENCE.format(module=module)
            stand_in = _STAND_IN.format(python=str(python), module=module, started=started, whence=whence)
            (package / "__main__.py").write_text(stand_in)
        python = _interpreter(folder / "cloudpar", [*self.sdk.folders("sdk/python"), stand_ins])
        if self.sdk is TODAY:
            (_site_packages(python.parents[1]) / "tokens.pth").write_text(_EARLIER_TOKENS)
        return python

    def check(self, folder: Path) -> None:
        """Check that each part has run, and has run its release's code."""
        command = [str(folder / "cloudpar/bin/python"), "-P", "-c", _WHENCE.format(module="cloudpar")]
        sdk = subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout
        started = {part: folder / f"{part}-started" for part in ("cloudpar_worker", "cloudpar_master")}
        for part, file in started.items():
            assert file.exists(), f"no {part} was started"
        for release, said in (
            (self.sdk, sdk),
            (self.worker, started["cloudpar_worker"].read_bytes()),
            (self.master, started["cloudpar_master"].read_bytes()),
        ):
            version, *files = json.loads(said)
            assert version == release.version
            assert all(Path(file).is_relative_to(release.root) for file in files), files


def _interpreter(folder: Path, sources: list[Path]) -> Path:
    """Make a venv that imports these folders and the packages installed here, except this project's installed code."""
    venv.create(folder, symlinks=True)
    installed = sysconfig.get_path("purelib")
    paths = "\n".join(map(str, [*sources, installed]))
    (_site_packages(folder) / "sources.pth").write_text(paths + "\n")
    return folder / "bin/python"


def _site_packages(folder: Path) -> Path:
    return folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
