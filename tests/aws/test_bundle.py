"""The functions run on what functions/bundle.sh puts together, which is only the code that they need."""

import os
import subprocess
import sys
from pathlib import Path

from .stores import REGION
from .template import ROOT
from .test_backend import ENVIRONMENT

HANDLERS = ["account", "client", "timer", "worker"]
LEFT_OUT = ["cloudpar_master/__main__.py", "cloudpar_master/server", "cloudpar_protocol/transport"]


def test_every_function_starts_without_the_embedded_server_and_the_transport(tmp_path: Path) -> None:
    uv, bundle = tmp_path / "uv", tmp_path / "bundle"
    uv.write_text("#!/bin/sh\n")  # installs no libraries: these tests have them
    uv.chmod(0o755)
    subprocess.run([ROOT / "functions/bundle.sh", bundle, "host"], env=os.environ | {"UV": str(uv)}, check=True)
    assert not [name for name in LEFT_OUT if (bundle / name).exists()]
    imports = [f"import cloudpar_handlers.{name} as last" for name in HANDLERS]
    started = subprocess.run(
        [sys.executable, "-c", "\n".join([*imports, "print(last.__file__)"])],
        env=os.environ | ENVIRONMENT | {"AWS_REGION": REGION, "PYTHONPATH": str(bundle)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert Path(started.stdout.strip()).is_relative_to(bundle)
