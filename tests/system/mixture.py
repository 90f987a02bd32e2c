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

_STAND_IN = """import os, pathlib, sys
pathlib.Path({started!r}).touch()
os.execv({python!r}, [{python!r}, "-P", "-m", {module!r}, *sys.argv[1:]])
"""
_WHENCE = """import cloudpar_protocol, {module}, json
print(json.dumps([cloudpar_protocol.__version__, cloudpar_protocol.__file__, {module}.__file__]))
"""


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
            stand_in = _STAND_IN.format(python=str(python), module=module, started=started)
            (package / "__main__.py").write_text(stand_in)
        return _interpreter(folder / "cloudpar", [*self.sdk.folders("sdk/python"), stand_ins])

    def check(self, folder: Path) -> None:
        """Whether each part's interpreter has its release's code, and the stand-ins have handed over to theirs."""
        for module, release in (
            ("cloudpar", self.sdk),
            ("cloudpar_worker", self.worker),
            ("cloudpar_master", self.master),
        ):
            command = [str(folder / module / "bin/python"), "-P", "-c", _WHENCE.format(module=module)]
            version, *files = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
            assert version == release.version
            assert all(Path(file).is_relative_to(release.root) for file in files), files
            assert module == "cloudpar" or (folder / f"{module}-started").exists(), f"no {module} was started"


def _interpreter(folder: Path, sources: list[Path]) -> Path:
    """A venv that finds these folders, and beside them what is installed here: not the code that is installed here."""
    venv.create(folder, symlinks=True)
    installed = sysconfig.get_path("purelib")
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    paths = "\n".join(map(str, [*sources, installed]))
    (folder / "lib" / version / "site-packages" / "sources.pth").write_text(paths + "\n")
    return folder / "bin/python"
