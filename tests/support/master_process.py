"""Runs `python -m cloudpar_master` as a process."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from msgspec import Struct

from cloudpar_protocol import codec
from cloudpar_protocol.routes import ReplyT, RequestT, Route
from support.processes import UNREAD_BYTES
from support.waiting import HANG_S

TOKENS = {"user_token": "user", "worker_token": "worker", "admin_token": "admin"}


def command(folder: Path, *options: str, module: str = "cloudpar_master") -> list[str]:
    return [sys.executable, "-m", module, "--data", str(folder), *options]


class Master:
    """A master that is ready. Without `stdin` it chooses its port, and does not end with its parent."""

    def __init__(
        self, folder: Path, *options: str, stdin: bool = False, settings: dict[str, float] | None = None,
        module: str = "cloudpar_master", environment: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        line = ["--stdin"] if stdin else []
        self.process = subprocess.Popen(
            command(folder, *(options or ("--port", "0")), *line, module=module),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pipesize=UNREAD_BYTES,
            env=environment,
        )
        if self.process.stdin is not None:
            self.process.stdin.write(json.dumps({**TOKENS, "settings": settings or {}}).encode() + b"\n")
            self.process.stdin.flush()
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        assert said, self.process.communicate()
        ready = json.loads(said)
        assert ready["event"] == "ready"
        self.endpoint: str = ready["endpoint"]
        self.port = int(self.endpoint.rpartition(":")[2])

    def connect(self) -> http.client.HTTPConnection:
        """Open a connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_S)

    def send(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> http.client.HTTPConnection:
        """Send a call on a connection of its own. Its answer is still to be read."""
        connection = self.connect()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": codec.MSGPACK}
        connection.request("POST", route.path, codec.encode(request), headers)
        return connection

    def call(self, token: str, route: Route[RequestT, ReplyT], request: Struct) -> ReplyT:
        """Make a call that succeeds, on a connection of its own."""
        connection = self.send(token, route, request)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        assert response.status == 200, body
        return codec.decode(body, route.reply)

    def speak(self, request: bytes) -> bytes:
        """Send bytes as they are, and read until the master closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=HANG_S) as peer:
            peer.sendall(request)
            said = peer.recv(65536)
            peer.shutdown(socket.SHUT_WR)
            while part := peer.recv(65536):
                said += part
            return said

    def kill(self) -> None:
        """Kill the master."""
        self.process.kill()
        self.process.communicate(timeout=HANG_S)

    def end(self, number: int = signal.SIGTERM) -> tuple[int, bytes]:
        """Send the master a signal, and return its exit code and its standard error."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> tuple[int, bytes]:
        """Wait until the master has ended, and return its exit code and its standard error."""
        _, errors = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.kill()


def connection_of(folder: Path) -> Any:
    """Read the connection.json that a master wrote."""
    return json.loads((folder / "connection.json").read_bytes())


def run(folder: Path, *options: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a master that ends by itself."""
    return subprocess.run(
        command(folder, *options), input=stdin, capture_output=True, check=False, timeout=HANG_S, env=os.environ
    )
