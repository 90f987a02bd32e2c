"""`python -m histories.client` is a client that does anything that a user may do, in random order, for some seconds.

It may be killed at any moment. What it must not lose is in the folder that it shares with the other clients: the bodies
of its account's starts, which its successor sends again, and the packages of all accounts.
"""

import hashlib
import os
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from histories.history import SUCCESS
from histories.wire import JSON, MSGPACK, Wire

REFERENCE = "histories.work:task"
SHORT_LIMIT_S = 0.1
"""A time limit that some tasks exceed."""


class Config(Struct):
    """What a client reads from its standard input. `until_s` is on the machine's monotonic clock."""

    endpoint: str
    account: str
    token: str
    name: str
    seed: str
    folder: str
    until_s: float


class Shared:
    """What outlives a killed client: lines that several processes append to files."""

    def __init__(self, folder: Path, account: str) -> None:
        self._keys, self._ids = folder / f"keys of {account}", folder / "ids"

    def intend(self, body: dict[str, Any]) -> None:
        """Note a start before it is sent."""
        _append(self._keys, msgspec.json.encode(body))

    def started(self, package_id: str) -> None:
        if package_id not in self.ids():
            _append(self._ids, package_id.encode())

    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in _lines(self._keys)]

    def ids(self) -> list[str]:
        return [line.decode() for line in _lines(self._ids)]


def _append(path: Path, line: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        file.write(line + b"\n")


def _lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines() if path.exists() else []


class Client:
    """One user. Each method named in ACTIONS is a call, or a few."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._random = Random(config.seed)
        mime = self._random.choice([JSON, MSGPACK])
        self._wire = Wire(
            config.endpoint, config.account, config.token, Path(config.folder, f"{config.name}.jsonl"), mime
        )  # fmt: skip
        self._shared = Shared(Path(config.folder), config.account)
        self._cursors: dict[str, int] = {}
        self._made = 0

    def run(self) -> None:
        for body in self._shared.bodies()[-3:]:
            self._send(body)  # the predecessor may not have learned whether these took effect
        while time.monotonic() < self._config.until_s:
            self._random.choices(list(ACTIONS), list(ACTIONS.values()))[0](self)
        self._wire.end()

    def _send(self, body: dict[str, Any]) -> None:
        status, reply = self._wire.call("start_tasks", body)
        if status == SUCCESS:
            self._shared.started(reply["package_id"])
            self._cursors.setdefault(reply["package_id"], 0)

    def start(self) -> None:
        self._made += 1
        n = self._random.choice([1, 2, 5, 12, 40])
        body = start_body(f"{self._config.name} {self._made}", n, self._random.randrange(1_000))
        body["chunksize"] = self._random.choice([None, 1, 3, 10])
        body["task_timeout_s"] = self._random.choice([None, None, SHORT_LIMIT_S])
        body["retries"] = self._random.choice([0, 0, 2])
        self._shared.intend(body)
        self._send(body)

    def start_again(self) -> None:
        for body in self._some(self._shared.bodies()):
            self._send(body | {"session": self._random.choice(["-", "other"])})

    def start_another(self) -> None:
        """Use a key for another package. Of both bodies, only the one that came first is accepted."""
        for body in self._some(self._shared.bodies()):
            self._wire.call("start_tasks", body | {"n": body["n"] + 1})

    def start_nothing(self) -> None:
        self._wire.call("start_tasks", start_body("refused", 0, 0))

    def wait(self) -> None:
        """Read on in some packages, or again from the start."""
        own = self._random.sample(list(self._cursors), min(len(self._cursors), self._random.randint(1, 8)))
        if not own:
            return
        if self._random.random() < 0.1:
            self._cursors.update(dict.fromkeys(own, 0))
        asked = [{"package_id": package_id, "cursor": self._cursors[package_id]} for package_id in own]
        message = {"packages": asked, "hold_s": self._random.choice([0.0, 0.0, 0.1, 0.5])}
        status, reply = self._wire.call("await_tasks", message)
        if status == SUCCESS:
            self._cursors.update({said["package_id"]: said["cursor"] for said in reply["packages"]})

    def adopt(self) -> None:
        """Find packages that another client of the account has started."""
        reply = self._wire.get("list_packages", {"limit": self._random.choice([10, 1_000])})
        self._cursors = {said["package_id"]: 0 for said in reply["packages"][:20]} | self._cursors

    def greet(self) -> None:
        self._wire.call("hello", {})

    def cancel(self) -> None:
        for package_id in self._some(list(self._cursors)):
            self._wire.call("cancel_tasks", {"package_id": package_id} | self._random.choice(CANCELS))

    def meddle(self) -> None:
        """Try to cancel, read and delete a package that may be another account's."""
        for package_id in self._some(self._shared.ids()):
            if package_id not in self._cursors and self._config.account == "bob":
                self._wire.call("cancel_tasks", {"package_id": package_id})
                self._wire.call("acknowledge", {"package_ids": [package_id]})
                self._wire.call("await_tasks", {"packages": [{"package_id": package_id}]})

    def acknowledge(self) -> None:
        self._wire.call("acknowledge", {"package_ids": self._some(list(self._cursors)) or ["no such package"]})

    def _some(self, known: list[Any]) -> list[Any]:
        """Return one of those that came last."""
        return [self._random.choice(known[-10:])] if known else []


CANCELS: list[dict[str, Any]] = [
    {}, {"ranges": [[0, 1]]}, {"ranges": [[1, 4], [6, 20]]}, {"only_queued": True},
    {"ranges": [[0, 1]], "only_queued": True},
]  # fmt: skip
"""The last one contradicts itself."""

ACTIONS = {
    Client.start: 12, Client.start_again: 4, Client.start_another: 3, Client.start_nothing: 1, Client.wait: 60,
    Client.adopt: 4, Client.greet: 8, Client.cancel: 4, Client.meddle: 2, Client.acknowledge: 2,
}  # fmt: skip
"""What a client does, and how frequently."""


def start_body(key: str, n: int, first: int) -> dict[str, Any]:
    """Return a request that starts n tasks."""
    code = {"hash": hashlib.sha256(REFERENCE.encode()).hexdigest(), "reference": REFERENCE}
    data = {"type": "range", "start": first, "step": 1}
    return {"idempotency_key": key, "n": n, "code": code, "data": data, "codec": "msgpack", "python": "3.11"}


if __name__ == "__main__":
    with os.fdopen(0, "rb", buffering=0, closefd=False) as stdin:
        Client(msgspec.json.decode(stdin.readline(), type=Config)).run()
    sys.exit()
