"""An instance of the fleet without a machine: its user data runs here, with stand-ins for the machine's programs."""

import base64
import os
import re
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from support.waiting import HANG_S

from .deployment import Deployment
from .group import Group

SYSTEMCTL = """
environment() {
  while IFS= read -r line; do export "${line?}"; done < <(cat "$ROOT/etc/cloudpar/worker.env" "$ROOT/limits")
}
case "$*" in
  'enable --now cloudpar-watch.service')
    environment
    "$ROOT/opt/cloudpar/watch.sh" >>"$ROOT/watch.log" 2>&1 &
    echo $! >"$ROOT/watch.pid"
    ;;
  'enable --now cloudpar-worker.service')
    environment
    if "$ROOT/opt/cloudpar/prepare.sh" >>"$ROOT/worker.log" 2>&1; then
      echo active >"$ROOT/state"
      "$ROOT/opt/cloudpar/run.sh" >>"$ROOT/worker.log" 2>&1
    else
      echo activating >"$ROOT/state"
    fi
    ;;
  'stop --no-block cloudpar-worker.service') echo inactive >"$ROOT/state" ;;
  'show --property ActiveState --value cloudpar-worker.service') cat "$ROOT/state" ;;
esac
"""

DOCKER = """
case "$1" in
  pull) test ! -e "$ROOT/no-image" ;;
  run) touch "$CLOUDPAR_SIGNS/leased" "$CLOUDPAR_SIGNS/heard" ;;
esac
"""

AWS = f'exec {sys.executable} {Path(__file__).with_name("aws_command.py")} "$@"\n'


class Host:
    """A host that boots. Its units run by a small `systemctl`; its worker is a `docker` that touches the two files.

    The calls of AWS reach the stand-in, which also says whether the group has taken the instance away.

    Args:
        deployment: Whose user data it runs.
        root: Stands for the root folder.
        instance: Its id.
        has_image: Whether the image of the worker can be pulled.
        limits: Other values for the times of watch.sh, by the names of its variables.
    """

    def __init__(
        self, deployment: Deployment, root: Path, instance: str, *, has_image: bool = True, **limits: str
    ) -> None:
        self._deployment, self._root, self._instance = deployment, root, instance
        self._group = Group(deployment)
        for name, script in {"systemctl": SYSTEMCTL, "docker": DOCKER, "aws": AWS}.items():
            self._program(name, script)
        for name in ("dnf", "shutdown", "iptables", "chown"):
            self._program(name, "")
        if not has_image:
            (root / "no-image").touch()
        (root / "state").touch()
        (root / "limits").write_text("".join(f"{name}={value}\n" for name, value in limits.items()))
        self._metadata = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())

    def _program(self, name: str, script: str) -> None:
        file = self._root / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f'#!/usr/bin/env bash\necho "{name} $*" >>"$ROOT/calls"\n{script}\n')
        file.chmod(0o755)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        host = self

        class Metadata(BaseHTTPRequestHandler):
            """Answers as the instance's metadata service does."""

            def do_PUT(self) -> None:
                self._answer("session")

            def do_GET(self) -> None:
                self._answer(host.metadata(self.path.removeprefix("/latest/meta-data/")))

            def _answer(self, text: str | None) -> None:
                self.send_response(404 if text is None else 200)
                self.end_headers()
                self.wfile.write((text or "").encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
                del format, args

        return Metadata

    def metadata(self, path: str) -> str | None:
        """Return an entry of the metadata service; None if there is none."""
        if path == "autoscaling/target-lifecycle-state":
            return "InService" if self._instance in self._group.instances() else "Terminated"
        return self._instance if path == "instance-id" else None

    def __enter__(self) -> Self:
        threading.Thread(target=self._metadata.serve_forever, daemon=True).start()
        script = self._root / "user-data"
        script.write_text(re.sub(r"/(?=(etc|opt)/)", f"{self._root}/", self._user_data()))
        port = self._metadata.server_address[1]
        environment = self._deployment.aws.environment | {
            "PATH": f"{self._root / 'bin'}{os.pathsep}{os.environ['PATH']}", "ROOT": str(self._root),
            "CLOUDPAR_METADATA": f"http://127.0.0.1:{port}/latest", "CLOUDPAR_LOOK_S": "0.1",
            "CLOUDPAR_SIGNS": str(self._root / "signs"), "CLOUDPAR_TOKEN_FILE": str(self._root / "run" / "token"),
        }  # fmt: skip
        subprocess.run(["bash", str(script)], env=environment, check=True, timeout=HANG_S)
        return self

    def _user_data(self) -> str:
        ec2 = self._deployment.aws.client("ec2")
        (template,) = ec2.describe_launch_templates()["LaunchTemplates"]
        found = ec2.describe_launch_template_versions(
            LaunchTemplateId=template["LaunchTemplateId"], Versions=["$Latest"]
        )
        return base64.b64decode(found["LaunchTemplateVersions"][0]["LaunchTemplateData"]["UserData"]).decode()

    def calls(self) -> list[str]:
        """Return the calls of the machine's programs."""
        return (self._root / "calls").read_text().splitlines()

    def token(self) -> str:
        """Return the workers' token, as the host has read it."""
        return (self._root / "run" / "token").read_text().strip()

    def await_end(self) -> str:
        """Wait until the instance has ended, and return what watch.sh has printed."""
        self._watch().wait(HANG_S)
        return (self._root / "watch.log").read_text()

    def _watch(self) -> psutil.Process:
        return psutil.Process(int((self._root / "watch.pid").read_text()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(psutil.NoSuchProcess):
            self._watch().kill()
        self._metadata.shutdown()
        self._metadata.server_close()
