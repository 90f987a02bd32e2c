"""A user's program that runs on an earlier release's code: it fills a data folder and leaves packages that run.

Arguments: the data folder, and the file for which the running tasks wait. It prints a JSON object, kills its cluster's
processes, and uses only what every release has.
"""

import json
import os
import re
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

import cloudpar

DATA_BYTES = 40_000
"""The size of an item: 20 of them are too many to be sent inline."""

OPENED, TASKS = 5, 20

UNREAD: list[object] = []
"""The pool and its results. If they were collected before the cluster is killed, the package would be acknowledged."""


def command(*arguments: str, **more: str) -> Any:
    """Run a command and return its JSON output."""
    line = [sys.executable, "-m", "cloudpar", *arguments, "--json"]
    return json.loads(subprocess.run(line, check=True, capture_output=True, env=os.environ | more).stdout)


def state(package_id: str, admin: list[str]) -> dict[str, Any]:
    """Return a package as the operator sees it."""
    listed = command("packages", "list", *admin)
    found = listed["packages"] if isinstance(listed, dict) else listed
    return next(each for each in found if each["package_id"] == package_id)


def settled_us(name: str, admin: list[str]) -> int:
    """Return what an account has spent, or 0 while some of its quota is reserved."""
    accounts = command("account", "list", *admin)["accounts"]
    account = next(each for each in accounts if each["name"] == name)
    return 0 if account["reserved_us"] else int(account["spent_us"])


def fill(connection: dict[str, str], gate: str) -> dict[str, Any]:
    """Make two accounts and leave three packages: one has ended unread, one is running, and one is waiting."""
    admin = ["--endpoint", connection["endpoint"], "--admin-token", connection["admin_token"]]
    ada = command("account", "create", "ada", "--hours", "5", *admin)
    command("account", "create", "grace", "--hours", "7", *admin)

    def large(item: bytes) -> bytes:
        return item * 2

    def wait_at_gate(number: int) -> int:
        while number >= OPENED and not os.path.exists(gate):  # noqa: PTH110 - a task of an earlier release
            time.sleep(0.01)
        return number * number

    token = ada["token"]
    packages: dict[str, str] = {}
    pool = cloudpar.Pool(connection["endpoint"], token, progress=False)
    read = pool.map(abs, range(10))
    assert list(read) == list(range(10))
    while not (first_us := settled_us("ada", admin)):
        time.sleep(0.05)
    ended = pool.map(large, [bytes([number]) * DATA_BYTES for number in range(TASKS)])
    packages["ended"] = str(ended.package_id)
    UNREAD.extend([pool, ended])
    user = ["--endpoint", connection["endpoint"], "--token", token]
    while state(packages["ended"], user)["state"] == "running":
        time.sleep(0.05)
    packages["running"] = str(pool.map(wait_at_gate, range(TASKS)).package_id)
    while state(packages["running"], user)["progress"]["done"] < OPENED:
        time.sleep(0.05)
    packages["waiting"] = str(pool.map(wait_at_gate, range(TASKS), chunksize=1).package_id)
    accounts = command("account", "list", *admin)
    return {"token": token, "first_us": first_us, "packages": packages, "accounts": accounts, "connection": connection}


def main() -> None:
    """Start a cluster, fill its folder, and kill it."""
    folder, gate = sys.argv[1:]
    Path(folder).mkdir()
    line = [sys.executable, "-m", "cloudpar", "up", "--workers", "1", "--port", "0", "--data", folder, "--json"]
    options = subprocess.run([*line, "--help"], check=True, capture_output=True, text=True).stdout
    if re.search(r"--isolation \[[^]]*none", options):  # otherwise, its worker runs tasks of all accounts
        line += ["--isolation", "none"]
    up = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    assert up.stdout is not None
    report = None
    try:
        report = fill(json.loads(up.stdout.readline()), gate)
    except Exception:  # noqa: BLE001 - the cluster ends after any error
        traceback.print_exc()
    cluster = psutil.Process(up.pid)
    for each in [cluster, *cluster.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # an executor ends with its agent
            each.kill()
    print(json.dumps(report), flush=True)
    os._exit(report is None)  # a pool that waits for its packages would never end


if __name__ == "__main__":
    main()
