"""The acceptance tests of earlier releases: their SDK and worker on today's master, and today's on theirs."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from support.scale import SCALE, Scale
from system.mixture import LAST_OF, TODAY, Mixture, unpack

CORE = ["tests/sdk/test_embedded.py", "tests/sdk/test_references.py"]
STARTED_TESTS = ["absence", "attempts", "fairness", "g17_limits", "joining", "killed", "million", "quota", "refusals"]
"""The tests of the whole system in 0.2.0 that start a master by its command. The others start one that keeps a journal
by private code of 0.2.0, so they cannot be mixed."""
SYSTEM = {"0.1.0": ["tests/system"], "0.2.0": [f"tests/system/test_{name}.py" for name in STARTED_TESTS]}
SYSTEM["0.3.0"] = [path for path in SYSTEM["0.2.0"] if path != "tests/system/test_joining.py"]  # it ended with 0.2.0
QUICK = ["tests/sdk/test_references.py", "tests/system/test_refusals.py"]
SLOWER = ["tests/cli/test_up.py", "tests/examples"]
STARTERS = ["tests/cli/operation.py", "examples/cluster.py"]
"""The files that start workers by their command."""


class Change(NamedTuple):
    """A line of a release's tests that depends on a later, deliberate change, and the reason."""

    file: str
    then: str
    now: str
    why: str


UP = Change(
    "tests/cli/test_up.py",
    then='exported["CLOUDPAR_TOKEN"]',
    now='__import__("json").loads((folder / "connection.json").read_bytes())["token"]',
    why="`up` of today prints the token at a terminal only",
)
REFERENCES = Change(
    "tests/sdk/test_references.py",
    then="base 10: 'x'$",
    now="base 10: 'x'",
    why="an exception of today has a note with its task, which pytest's `match` sees",
)
PARTS = [
    Change(
        "tests/sdk/test_references.py",
        then=then,
        now=now,
        why="an error of today names the argument, and the part of it, that is meant",
    )
    for then, now in (
        ("the data of task 1 is not", "the data of task 1.* is not"),
        (r"\(args, kwargs\) is not", "argument 1 of copy:copy .* is not"),
    )
]
TYPE = Change(
    "tests/sdk/test_references.py",
    then=r"a _thread\.lock, is not",
    now=r"of type _thread\.lock, is not",
    why="a text of today names a type without an article",
)
NOTES = Change(
    "tests/sdk/test_embedded.py",
    then='.__notes__ == ["look here"]',
    now='.__notes__[:1] == ["look here"]',
    why="an exception of today has a note with its task",
)
CHALLENGE = Change(
    "tests/sdk/fake_master.py",
    then="        route = self.routes[self.path]\n",
    now=(
        "        if self.path not in self.routes:\n            self._send(404, b'')\n            return\n"
        "        route = self.routes[self.path]\n"
    ),
    why="a client of today first sends a challenge, to which a master of the release answers 404; its fake one fails",
)
LIMIT = Change(
    "tests/system/test_refusals.py",
    then='    monkeypatch.setattr(packing, "PACKAGE_TASKS", 10_000)\n',
    now=(
        '    monkeypatch.setattr(packing, "PACKAGE_TASKS", 10_000)\n'
        '    monkeypatch.setattr("cloudpar._serialization.packing.PACKAGE_TASKS", 10_000)\n'
    ),
    why="two modules of today compare with the limit",
)
SIZES = [
    Change(
        "tests/sdk/test_embedded.py",
        then=f"from {module} import {name}\n",
        now=f"{name} = {value}  # of {module}\n",
        why="the process of a mixture's tests imports no master and no worker",
    )
    for module, name, value in (
        ("cloudpar_master.adapters.embedded.code_blobs", "KEPT_BYTES", "256 * 1024 * 1024"),
        ("cloudpar_worker.executor.code_cache", "CACHED_BYTES", "128 * 1024 * 1024"),
    )
]
WITH_AN_OLD_MASTER: dict[str, list[Change]] = {
    "0.1.0": [
        *(
            Change(
                starter,
                then='"--executors", str(executors)',
                now='"--executors", str(executors), "--isolation", "own"',
                why="the tests' tasks write anywhere, which a worker of today allows only its owner",
            )
            for starter in STARTERS
        ),
        UP,
        REFERENCES,
        TYPE,
        CHALLENGE,
        *PARTS,
        LIMIT,
    ],
    "0.2.0": [NOTES, REFERENCES, TYPE, CHALLENGE, *PARTS, UP, LIMIT],
    "0.3.0": SIZES,
}
MOVED = {
    "from cloudpar import Pool, packing, session": (
        "from cloudpar import Pool\nfrom cloudpar._client import orders as session\n"
        "from cloudpar._serialization import packer as packing"
    ),
    "from cloudpar import awaiter, connection": "from cloudpar._client import awaiter, connection",
    "from cloudpar.child import": "from cloudpar._local.child import",
    "from cloudpar.connection import": "from cloudpar._client.connection import",
    "from cloudpar.deaths import": "from cloudpar._local.restart_policy import",
    "from cloudpar.patience import Patience": "from cloudpar._client.retry_policy import RetryPolicy as Patience",
    '"cloudpar.local.': '"cloudpar._local.programs.',
    'wire._lines.post("/v1/hello", b"\\x80", connect_s=5.0, answer_s=5.0)': (
        "wire._channel._master.post("
        '"/v1/hello", b"\\x80", __import__("types").SimpleNamespace(connect_s=5.0, answer_s=5.0))'
    ),
}
"""Today's places of private modules that tests of earlier releases import."""
NAMES = Change(
    "tests/system/test_million.py",
    then='once_like_a_short_one(cluster: Up) -> None:\n    customer = Customer(cluster, "many")',
    now='once_like_a_short_one(cluster: Up) -> None:\n    customer = Customer(cluster, "more")',
    why="the names of active accounts are unique on a master of today",
)
SETTING = Change(
    "tests/cli/test_up.py",
    then='"$.settings.lease_s"',
    now='"--set lease_s=0"',
    why="a master of today names the option of a wrong setting",
)
WITH_OLD_CLIENTS: dict[str, list[Change]] = {"0.1.0": [NAMES], "0.2.0": [NAMES, SETTING], "0.3.0": SIZES}


def apply(change: Change, root: Path) -> None:
    """Change exactly one place: all other lines of the release's tests stay as they were released."""
    file = root / change.file
    text = file.read_text()
    assert text.count(change.then) == 1, change
    file.write_text(text.replace(change.then, change.now))


def follow(root: Path) -> None:
    """Let a release's tests import private modules of today's SDK."""
    for file in root.joinpath("tests").rglob("*.py"):
        text = now = file.read_text()
        for old, new in MOVED.items():
            now = now.replace(old, new)
        if now != text:
            file.write_text(now)


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("master_is_old", [False, True], ids=["old clients", "old master"])
@pytest.mark.parametrize("version", SCALE(["0.3.0"], list(LAST_OF)))
def test_g13_an_earlier_releases_tests_pass_on_a_mixture(
    version: str, master_is_old: bool, tmp_path: Path, scale: Scale, reached: Callable[[str], None]
) -> None:
    old = unpack(version, tmp_path / "old")
    for change in (WITH_AN_OLD_MASTER if master_is_old else WITH_OLD_CLIENTS)[version]:
        apply(change, old.root)
    if master_is_old:
        follow(old.root)
    mixture = Mixture(TODAY, TODAY, old) if master_is_old else Mixture(old, old, TODAY)
    python = mixture.interpreter(tmp_path / "mixture")
    quietly = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [str(python), "-m", "pytest", *quietly, *scale(QUICK, [*CORE, *SYSTEM[version], *SLOWER])]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CLOUDPAR_"))}
    ended = subprocess.run(command, cwd=old.root, env=clean, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout[-5_000:] + ended.stderr[-2_000:]
    # All tests must run: none may be skipped or expected to fail.
    passed = re.fullmatch(r"(\d+) passed in .*", ended.stdout.splitlines()[-1])
    assert passed is not None, ended.stdout[-5_000:]
    mixture.check(tmp_path / "mixture")
    sides = (
        f"SDK and worker of today, master of {version}"
        if master_is_old
        else f"SDK and worker of {version}, master of today"
    )
    reached(f"{sides}: {passed[1]} acceptance tests of {version} pass")
