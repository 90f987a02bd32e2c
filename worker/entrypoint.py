"""The container's first process: reads the worker token, gives up root, and looks after one agent.

It starts as root only to read the token, which nobody else may read. Of its capabilities the agent hands three on to
the zygotes, which give each executor a user of its own and end it; nobody else uses one. SIGTERM goes on to the agent,
which drains; processes that tasks leave behind are reaped here.

The agent runs on the Python named by CLOUDPAR_PYTHON, and so do its executors at first. It knows all that there are,
and takes for each package its client's.
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
"""Below it an environment for each version, as worker/install.sh makes them: 3.13/bin/python."""
TOKEN: Final = Path("/run/cloudpar/worker-token")
USER: Final = 10001


def main() -> int:
    """Run an agent to its end; its exit code, as a shell counts it."""
    # A container's first process never gets a signal that it has no handler for: a drain would wait for its time limit.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os._exit(128 + received))
    token = Path(os.environ.get("CLOUDPAR_TOKEN_FILE", TOKEN)).read_text(encoding="utf-8").strip()
    give_up_root()
    interpreters = pythons(Path(os.environ.get("CLOUDPAR_PYTHONS", PYTHONS)))
    wanted = os.environ.get("CLOUDPAR_PYTHON") or next(reversed(interpreters), "")
    if wanted not in interpreters:
        have = ", ".join(interpreters) or "none at all"
        print(f"cloudpar: CLOUDPAR_PYTHON={wanted} is not in this image, which has {have}", file=sys.stderr)  # noqa: T201
        return 2
    settings = {
        "endpoint": os.environ["CLOUDPAR_ENDPOINT"].rstrip("/"),
        "token": token,
        "executors": int(os.environ.get("CLOUDPAR_EXECUTORS") or len(os.sched_getaffinity(0))),
        "tmp": "/tmp",  # noqa: S108 - the container's own, in memory
        "pythons": interpreters,
        "isolation": "shared",
        "readable": folders("CLOUDPAR_READABLE"),
        "writable": folders("CLOUDPAR_WRITABLE"),
    }
    return look_after(interpreters[wanted], settings)


def give_up_root() -> None:
    """Become an ordinary user for good, whose memory no task may read."""
    if os.geteuid() == 0:
        become_with_needed(USER)
    no_new_privileges()
    hide_memory()


def folders(variable: str) -> list[str]:
    """Besides the system's and their own, for tasks: separated like those of PATH."""
    return list(filter(None, os.environ.get(variable, "").split(os.pathsep)))


def pythons(folder: Path) -> dict[str, str]:
    """The interpreters in an image, by version, oldest first."""
    found = [path for path in folder.glob("*/bin/python") if os.access(path, os.X_OK)]
    by_version = {path.parent.parent.name: str(path) for path in found}
    return dict(sorted(by_version.items(), key=lambda item: tuple(map(int, item[0].split(".")))))


def look_after(python: str, settings: dict[str, object]) -> int:
    """Start the agent, pass signals on, reap, and wait for it."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("CLOUDPAR_")}
    environment |= {"HOME": "/tmp", "PYTHONUNBUFFERED": "1"}  # noqa: S108 - the same
    command = [python, "-P", "-m", "cloudpar_worker", "--stdin"]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    set_capabilities(0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _frame: os.kill(agent.pid, received))
    if agent.stdin is not None:  # stays open: its end would be the agent's
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
