"""The container's first process. It reads the worker token, gives up root, and looks after one agent.

This process starts as root, because no other user may read the token. When it gives up root it keeps three
capabilities, which the agent passes on to the zygotes. The zygotes need these capabilities to give each executor a user
id of its own, and to kill executors. No other process uses them. On SIGTERM, this process sends SIGTERM to the agent,
which then drains. This process also reaps processes that tasks leave behind.

The agent, and at first its executors, run on the Python that CLOUDPAR_PYTHON names, or on the newest installed Python.
The agent knows all installed versions, and runs each package on the version of its client.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from cloudpar_worker.sandbox.kernel import become_with_needed, hide_memory, no_new_privileges, set_capabilities

PYTHONS: Final = Path("/opt/cloudpar/python")
"""The folder with an environment for each version, such as 3.13/bin/python. worker/install.sh makes the environments.
"""
TOKEN: Final = Path("/run/cloudpar/worker-token")
SIGNS: Final = Path("/run/cloudpar/signs")
"""A folder of the host. If the container has it, the agent shows there whether it has work (shell/signs.py)."""
USER: Final = 10001


def main() -> int:
    """Run an agent until it ends; return its exit code, or 128 plus the number of the signal that ended it.

    Return 2 if the Python that CLOUDPAR_PYTHON names is not in the image.
    """
    # The kernel gives a container's first process only signals that it handles. Without these handlers, a SIGTERM
    # before the agent's start would be lost. The container would then run on until the time limit for its stop, and
    # would then be killed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os._exit(128 + received))
    token = Path(os.environ.get("CLOUDPAR_TOKEN_FILE", TOKEN)).read_text(encoding="utf-8").strip()
    give_up_root()
    interpreters = pythons(Path(os.environ.get("CLOUDPAR_PYTHONS", PYTHONS)))
    wanted = os.environ.get("CLOUDPAR_PYTHON") or next(reversed(interpreters), "")
    if wanted not in interpreters:
        have = ", ".join(interpreters) or "none at all"
        print(f"cloudpar: CLOUDPAR_PYTHON={wanted} is not in this image, which has {have}", file=sys.stderr)
        return 2
    signs = Path(os.environ.get("CLOUDPAR_SIGNS", SIGNS))
    settings = {
        "endpoint": os.environ["CLOUDPAR_ENDPOINT"].rstrip("/"),
        "token": token,
        "executors": int(os.environ.get("CLOUDPAR_EXECUTORS") or len(os.sched_getaffinity(0))),
        "tmp": "/tmp",  # noqa: S108 - the container's own folder, in memory
        "pythons": interpreters,
        "isolation": "shared",
        "readable": folders("CLOUDPAR_READABLE"),
        "writable": folders("CLOUDPAR_WRITABLE"),
        "signs": str(signs) if signs.is_dir() else None,
    }
    return look_after(interpreters[wanted], settings)


def give_up_root() -> None:
    """If this process is root, become an ordinary user for good. Keep tasks from reading this process's memory."""
    if os.geteuid() == 0:
        become_with_needed(USER)
    no_new_privileges()
    hide_memory()


def folders(variable: str) -> list[str]:
    """Return the folders that an environment variable lists, separated as in PATH."""
    return list(filter(None, os.environ.get(variable, "").split(os.pathsep)))


def pythons(folder: Path) -> dict[str, str]:
    """Return the interpreters in this folder, by version; the oldest version comes first."""
    found = [path for path in folder.glob("*/bin/python") if os.access(path, os.X_OK)]
    by_version = {path.parent.parent.name: str(path) for path in found}
    return dict(sorted(by_version.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def look_after(python: str, settings: dict[str, object]) -> int:
    """Start the agent. Until it ends, pass signals on to it, and reap other processes. Return the agent's exit code."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("CLOUDPAR_")}
    environment |= {"HOME": "/tmp", "PYTHONUNBUFFERED": "1"}  # noqa: S108 - the same
    command = [python, "-P", "-m", "cloudpar_worker", "--stdin"]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    set_capabilities(0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os.kill(agent.pid, received))
    if agent.stdin is not None:  # stays open: the agent ends when its standard input does
        agent.stdin.write(json.dumps(settings).encode() + b"\n")
        agent.stdin.flush()
    while True:
        pid, status = os.wait()
        if pid == agent.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    exit_code = main()
    sys.stdout.flush()
    os._exit(exit_code)
