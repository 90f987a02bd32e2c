"""Two releases at work together: the SDK's process of one, and masters and workers of whichever."""

import json
import runpy
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LAST_OF = {"0.1.0": "b82d0118", "0.2.0": "f76d7c74"}
"""The last whole commit of each release: later ones already hold part of the next release's messages."""

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
"""Writes down whose code it hands over to. The SDK's process takes its own code's folders for a project of the user's,
as they are not installed, and names them in PYTHONPATH: with them, workers would have messages of another release."""


class Release(NamedTuple):
    """A release's code."""

    name: str
    root: Path

    def folders(self, *names: str) -> list[Path]:
        """Where some of its packages are imported from."""
        return [self.root / name for name in ("sdk/protocol", *names)]

    @property
    def version(self) -> str:
        """As its code says."""
        return str(runpy.run_path(str(self.root / "sdk/protocol/cloudpar_protocol/version.py"))["__version__"])


TODAY = Release("today", ROOT)


def unpack(version: str, folder: Path) -> Release:
    """The code of an earlier release, as the history has it."""
    command = ["git", "archive", LAST_OF[version]]
    try:
        packed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        text = f"the history has no {version} ({error.stderr.decode()}): git fetch --unshallow"
        raise AssertionError(text) from None
    folder.mkdir()
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    return Release(version, folder)


class Mixture(NamedTuple):
    """Which release each part is of."""

    sdk: Release
    worker: Release
    master: Release

    def interpreter(self, folder: Path) -> Path:
        """A Python whose SDK is of one release, and starts masters and workers of others; with today's dependencies."""
        stand_ins = folder / "stand-ins"
        for module, release in (("cloudpar_worker", self.worker), ("cloudpar_master", self.master)):
            python = _interpreter(folder / module, release.folders("sdk/python", "worker", "functions"))
            package = stand_ins / module
            package.mkdir(parents=True)
            started = str(folder / f"{module}-started")
            whence = _WHENCE.format(module=module)
            stand_in = _STAND_IN.format(python=str(python), module=module, started=started, whence=whence)
            (package / "__main__.py").write_text(stand_in)
        return _interpreter(folder / "cloudpar", [*self.sdk.folders("sdk/python"), stand_ins])

    def check(self, folder: Path) -> None:
        """Whether each part ran its release's code, and has run at all."""
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
    """A venv that finds these folders, and beside them what is installed here: not the code that is installed here."""
    venv.create(folder, symlinks=True)
    installed = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    paths = "\n".join(map(str, [*sources, installed]))
    (folder / "lib" / version / "site-packages" / "sources.pth").write_text(paths + "\n")
    return folder / "bin/python"
