import fcntl
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sdk/typescript"
LAST = PACKAGE / "dist/index.d.cts"
"""The file that a build writes last."""


def built() -> Path:
    """Return the folder of the JavaScript SDK, built from its present sources.

    Only one process builds at a time, because a build first removes what the last one has written.
    """
    folder = os.open(PACKAGE, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        sources = [*PACKAGE.glob("*.json"), *PACKAGE.glob("scripts/*"), PACKAGE / "src", *PACKAGE.glob("src/**/*")]
        if not LAST.exists() or LAST.stat().st_mtime <= max(source.stat().st_mtime for source in sources):
            command = [str(ROOT / "node_modules/.bin/tsx"), "scripts/build.ts"]
            subprocess.run(command, cwd=PACKAGE, check=True, timeout=100)
    finally:
        os.close(folder)
    return PACKAGE
