"""A worker of a shared pool with a victim: an executor of another account, and secrets in many places."""

import json
import os
import pickle
import shutil
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from cloudpar_protocol.payloads import TaskResult
from cloudpar_worker.sandbox import uid_pool
from support.leases import inline, lease_of
from support.running_agent import RunningAgent
from worker.image import link
from worker.scripted_master import ScriptedMaster

SECRET = "the-operators-key"
ONE_USER = 60_577
"""The user of the worker that cannot give executors user ids of their own, if root runs the tests."""
MODES = ["own-users", "one-user"] if os.geteuid() == 0 else ["one-user"]


def python_for_all(folder: Path) -> str:
    """An interpreter that other users may read; without root, this machine's is one."""
    if os.geteuid() != 0 or not uid_pool.obstacle(tempfile.gettempdir()):
        return sys.executable
    library = Path(sysconfig.get_path("stdlib"))
    base = Path(sys.base_prefix)
    there = shutil.ignore_patterns("site-packages", "test", "idlelib", "ensurepip")
    shutil.copytree(library, folder / library.relative_to(base), symlinks=True, ignore=there, copy_function=link)
    for shared in base.glob("lib/libpython*"):
        link(str(shared), str(folder / "lib" / shared.name))
    python = folder / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    python.parent.mkdir()
    link(os.path.realpath(sys.executable), str(python))
    return str(python)


def imports_for(python: str) -> dict[str, str]:
    """The environment in which such an interpreter finds this project and its libraries."""
    return {
        "LD_LIBRARY_PATH": str(Path(python).parents[1] / "lib"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if "site-packages" in path or ROOT in path),
    }


def victim(endpoint: tuple[str, int]) -> None:
    """Another account's task: it leaves a secret in every place that it can write, reports where, and stays."""
    secret = "the-other-accounts-key"
    folder = Path(tempfile.mkdtemp())
    (folder / "secret").write_text(secret)
    os.environ["SECRET"] = secret
    shared = Path(f"/dev/shm/secret-{os.getpid()}")
    try:
        shared.write_text(secret)
        shared.chmod(0o600)
    except OSError:
        pass
    with socket.create_connection(endpoint) as line:
        line.sendall(json.dumps([os.getpid(), tempfile.gettempdir(), str(folder / "secret"), str(shared)]).encode())
        line.shutdown(socket.SHUT_WR)
        line.recv(1)


def listening(path: Path) -> socket.socket:
    """A socket at a path."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


class Shared:
    """The worker; `clues` is what an attacker could know."""

    def __init__(self, mode: str, folder: Path, python: str, *, executors: int = 2, **settings: Any) -> None:
        self.master = ScriptedMaster()
        self.mode = mode
        user = ONE_USER if mode == "one-user" and os.geteuid() == 0 else None
        home = folder / "home"
        (home / "data").mkdir(parents=True)
        for name in ("profile", "data/connection.json", "worker-token"):
            (home / name).write_text(SECRET)
            (home / name).chmod(0o600)
        self._line: socket.socket | None = None
        self.clues: dict[str, Any] = {}
        self._listening = listening(home / "socket")
        self._metadata = socket.create_server(("127.0.0.1", 0))
        metadata: tuple[str, int] = self._metadata.getsockname()
        for path in [home, *home.rglob("*")]:
            if user is not None:
                os.chown(path, user, user)
        home.chmod(0o700)
        tmp = folder / "tmp"
        tmp.mkdir()
        open_to_all = folder / "open_to_all"
        open_to_all.mkdir()
        for path in (tmp, open_to_all):
            path.chmod(0o1777)
        self._public = listening(open_to_all / "socket")
        (open_to_all / "socket").chmod(0o666)
        self.tmp = tmp
        environment = {
            "HOME": str(home), "SECRET_KEY": SECRET, "CLOUDPAR_TOKEN": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://{}:{}".format(*metadata),
        } | imports_for(python)  # fmt: skip
        options = {"isolation": "shared"} | settings
        self.agent = RunningAgent(
            self.master.endpoint, executors=executors, python=python, user=user, environment=environment,
            tmp=str(tmp), **options,
        )  # fmt: skip
        try:
            self.agent.wait_until_ready()
        except BaseException:
            self.close()
            raise
        (zygote,) = psutil.Process(self.agent.process.pid).children()
        with socket.create_server(("127.0.0.1", 0)) as service:
            service_port = service.getsockname()[1]
        self.clues = {
            "service_port": service_port,
            "agent": self.agent.process.pid, "zygote": zygote.pid, "looks_after": os.getpid(), "home": str(home),
            "endpoint": self.master.endpoint, "tmp": str(tmp),
            "open_to_all": str(open_to_all), "public": str(open_to_all / "socket"), "metadata": metadata,
        }  # fmt: skip

    def invade(self) -> None:
        """Run another account's task, and add everything that can be known about it to the clues."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            lease = lease_of(victim, 1, account="account-2", data=inline([server.getsockname()]))
            self.master.hand_out(lease)
            self._line, _ = server.accept()
        line = b""
        assert self._line is not None
        while more := self._line.recv(4096):
            line += more
        self.clues |= dict(zip(("other", "other_folder", "other_file", "other_shared"), json.loads(line), strict=True))

    def run(self, function: Callable[..., Any], *, account: str = "account-1", **changes: Any) -> Any:
        """The result of one task over the clues."""
        lease = lease_of(function, 1, account=account, data=inline([self.clues | changes.pop("clues", {})]), **changes)
        self.master.hand_out(lease)
        (result,) = self.master.wait_for_results(1, lease.package_id).values()
        return result

    def close(self) -> None:
        self._listening.close()
        self._public.close()
        self._metadata.close()
        if self._line is not None:
            self._line.close()
        self.agent.close()
        self.master.close()
        # Left by a victim that is not confined.
        Path(self.clues.get("other_shared", self.tmp / "none")).unlink(missing_ok=True)


ROOT = str(Path(__file__).parents[3])


def found(result: TaskResult) -> bool:
    """Whether a probe has found something. What it found may not be data: it may refer to an open file.

    Only a probe that returns counts. One that ends its executor, or takes too long, has shown nothing.
    """
    assert result.outcome in {"ok", "error", "unpicklable"}, result
    if result.outcome == "error":
        assert isinstance(pickle.loads(result.data or b"N."), OSError), result
        return False
    return result.outcome == "unpicklable" or bool(pickle.loads(result.data or b""))
