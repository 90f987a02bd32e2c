"""Runs real processes under faults, lets them end what they started, and judges what the clients recorded.

`PYTHONPATH=tests .venv/bin/python -m histories.run SEED SECONDS` does one run and prints the violations.
"""

import hashlib
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from threading import Event, Thread
from typing import Any, Final, NamedTuple

from histories import work
from histories.books import RUNNING, Violation
from histories.checker import violations
from histories.client import Shared
from histories.faults import plan, strike
from histories.history import Call, Recorder, calls, read
from histories.site import Site
from histories.wire import PATIENCE_S, Wire, packed
from support.master_process import TOKENS

QUOTAS_US: Final = {"ann": 3_600_000_000, "bob": 2_000_000}
"""Bob uses up his quota again and again."""
MORE_US = 1_000_000
BATCH = 20
"""How many packages the last reader awaits at a time."""


class Judged(NamedTuple):
    """What came of a run."""

    calls: list[Call]
    faults: int
    violations: list[Violation]


def value(request: dict[str, Any], index: int) -> Any:
    """Return what a result of a task has as `data`: nothing if the value is a blob."""
    number = request["data"]["start"] + index * request["data"]["step"]
    return None if number % work.LARGE == 0 else packed(work.value(number))


def token_of(account: str) -> str:
    return f"token of {account}"


class Operator:
    """Creates the accounts, and grants compute time and looks at the books while the others work."""

    def __init__(self, site: Site, seed: str) -> None:
        self._wire = Wire(site.endpoint, "admin", TOKENS["admin_token"], site.folder / "operator.jsonl")
        self._random = Random(seed)
        self._ids: dict[str, str] = {}
        self._grants = 0

    def create_accounts(self) -> None:
        for name, quota_us in QUOTAS_US.items():
            token_hash = hashlib.sha256(token_of(name).encode()).hexdigest()
            request = {"idempotency_key": name, "name": name, "token_hash": token_hash, "quota_us": quota_us}
            self._ids[name] = self._wire.get("create_account", request)["account"]["account_id"]

    def work(self, end: Event) -> None:
        while not end.wait(0.2):
            self.look()
            if self._random.random() < 0.2:
                self._grants += self._random.random() < 0.7  # else the same grant again
                message = {"idempotency_key": f"grant {self._grants}", "quota_us": MORE_US}
                self._wire.get("grant_quota", message | {"account_id": self._ids["bob"]})
            if self._random.random() < 0.1:
                self._wire.get("list_packages", {"limit": 1_000})

    def look(self) -> None:
        self._wire.get("list_accounts", {})

    def end(self) -> None:
        self._wire.end()


def read_to_the_end(site: Site, account: str) -> None:
    """Send all starts of an account again, and read each of its packages until it has ended and is settled.

    Some keys are then used with another body, so that each run has such calls.
    """
    wire = Wire(site.endpoint, account, token_of(account), site.folder / f"reader of {account}.jsonl")
    shared = Shared(site.folder, account)
    for body in shared.bodies():
        wire.call("start_tasks", body)
    for body in shared.bodies()[:5]:
        wire.call("start_tasks", body | {"n": body["n"] + 1})
    listed = [each["package_id"] for each in wire.get("list_packages", {"limit": 1_000})["packages"]]
    for at in range(0, len(listed), BATCH):
        _read(wire, listed[at : at + BATCH])
    wire.get("list_packages", {"limit": 1_000})
    wire.get("hello", {})
    wire.end()


def _read(wire: Wire, package_ids: list[str]) -> None:
    cursors, deadline = dict.fromkeys(package_ids, 0), time.monotonic() + PATIENCE_S
    while cursors and time.monotonic() < deadline:
        asked = [{"package_id": package_id, "cursor": cursor} for package_id, cursor in cursors.items()]
        reply = wire.get("await_tasks", {"packages": asked, "hold_s": 0.5})
        for said in reply["packages"]:
            cursors[said["package_id"]] = said["cursor"]
            if said["state"] != RUNNING and said.get("settled") and not said.get("more"):
                del cursors[said["package_id"]]
        Event().wait(0.05)  # a package that has ended is news, so the master holds no request for it


def run(folder: Path, seed: str, seconds: float, every_s: float, bug: str = "") -> Judged:
    """Run clients and faults for some seconds, and judge the history. The master may have a bug (histories.bugs)."""
    faults, record = plan(seed, seconds, every_s), Recorder(folder / "faults.jsonl")
    with Site(folder, seed, bug) as site:
        operator, end = Operator(site, seed), Event()
        operator.create_accounts()
        began_s = time.monotonic()
        site.start_clients({account: token_of(account) for account in QUOTAS_US}, began_s + seconds)
        thread = Thread(target=operator.work, args=(end,))
        thread.start()
        try:
            for fault in faults:
                Event().wait(max(0.0, began_s + fault.at_s - time.monotonic()))
                strike(site, fault, record)
            site.end_clients()
        finally:
            end.set()
            thread.join()
        for account in QUOTAS_US:
            read_to_the_end(site, account)
        operator.look()
        operator.end()
    record.close()
    history = calls(read(folder))
    return Judged(history, len(faults), violations(history, value))


def report(seed: str, judged: Judged) -> str:
    """Return the seed, what was recorded, and each violation with its calls."""
    said = Counter(call.route for call in judged.calls)
    lines = [f"seed {seed}: {len(judged.calls)} calls ({dict(said)}), {judged.faults} faults"]
    return "\n".join([*lines, *map(str, judged.violations)])


def main() -> int:
    seed, seconds = sys.argv[1], float(sys.argv[2])
    with tempfile.TemporaryDirectory() as name:
        judged = run(Path(name), seed, seconds, every_s=min(2.0, seconds / 4))
    print(report(seed, judged))
    return 1 if judged.violations else 0


if __name__ == "__main__":
    sys.exit(main())
