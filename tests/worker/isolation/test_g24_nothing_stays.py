"""Guarantee 24: nothing stays of the tasks of a shared worker once its executors serve another account."""

import ctypes
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from support.leases import inline, lease_of
from support.scale import Scale
from support.waiting import until
from worker.isolation import leaving
from worker.isolation.leaving import ENDS, TRICKS, endless, listeners
from worker.isolation.shared import Shared
from worker.isolation.traces import named, names_of_open_files, of_worker
from worker.tasks import value_of

EXECUTORS = 2
LIMIT_S = 0.3


def wait_at(address: tuple[str, int]) -> None:
    """A task that stays until the test hangs up."""
    with socket.create_connection(address) as line:
        line.recv(1)


@contextmanager
def others_run(shared: Shared) -> Iterator[None]:
    """Meanwhile all executors run tasks of another account."""
    with ExitStack() as open_until_then, socket.create_server(("127.0.0.1", 0)) as server:
        leases = [lease_of(wait_at, 1, account="other", data=inline([server.getsockname()])) for _ in range(EXECUTORS)]
        shared.master.hand_out(*leases)
        for _ in leases:
            open_until_then.enter_context(server.accept()[0])
        yield
    for lease in leases:
        assert shared.master.wait_for_results(1, lease.package_id)[0].outcome == "ok"


def attack(shared: Shared, mark: str, wave: int) -> set[int]:
    """Run each trick once, each for an account of its own. Returns the inodes of the sockets that were opened."""
    data = inline([mark])
    leases = {
        trick: lease_of(
            trick, 1, account=f"hostile-{wave}-{trick.__name__}", data=data,
            task_timeout_s=LIMIT_S if trick is endless else 3600.0,
        )
        for trick in TRICKS
    }  # fmt: skip
    shared.master.hand_out(*leases.values())
    results = {trick: shared.master.wait_for_results(1, lease.package_id)[0] for trick, lease in leases.items()}
    outcomes = {trick.__name__: result.outcome for trick, result in results.items()}
    assert outcomes == {trick.__name__: ENDS.get(trick, "ok") for trick in TRICKS}
    return set(value_of(results[listeners]))


def wait_for(wanted: Any, seen: Callable[[], Any]) -> None:
    """Wait until this is seen; the error shows what is seen in its place."""
    with suppress(AssertionError):
        until(lambda: seen() == wanted)
    assert seen() == wanted


def test_g24_nothing_stays_of_hostile_tasks(
    start: Callable[..., Shared], mode: str, scale: Scale, reached: Callable[..., None]
) -> None:
    shared = start(mode, executors=EXECUTORS, processes=200, memory_mb=4_000)
    agent, zygote, tmp = shared.clues["agent"], shared.clues["zygote"], shared.tmp
    mark = f"mark-{secrets.token_hex(8)}"
    users = EXECUTORS if mode == "own-users" else 0
    with others_run(shared):
        descriptors = of_worker(agent, zygote, tmp)["descriptors"]
    wanted = {"processes": EXECUTORS + 1, "folders": EXECUTORS, "user ids": users, "descriptors": descriptors}
    waves = scale(1, 250)

    def left(sockets: Any) -> Any:
        return named(mark, tmp, sockets), of_worker(agent, zygote, tmp)

    for wave in range(waves):
        sockets = attack(shared, mark, wave)
        with others_run(shared):
            wait_for((set(), wanted), partial(left, sockets))
        shared.master.set(publications=[], requests=[])  # each wave would search those of all earlier ones
    reached("{tasks} hostile tasks: no process, file, shared memory, user id or port left", tasks=waves * len(TRICKS))


NOT_CONFINED = """
import sys
from worker.isolation import leaving
print(getattr(leaving, sys.argv[1])(sys.argv[2]) or [], flush=True)
"""


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark; afterwards everything with its name ends."""
    mark = f"mark-{secrets.token_hex(8)}"
    yield mark
    for process in psutil.process_iter():
        if any(mark in text for text in names_of_open_files(process.pid)):
            process.kill()
    for path in Path("/dev/shm").glob(f"{mark}*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
            shutil.rmtree(path)
        else:
            path.unlink()
    libc, key = ctypes.CDLL("librt.so.1"), leaving.key_of(mark)
    libc.shmctl(libc.shmget(key, 0, 0), 0, None)
    libc.semctl(libc.semget(key, 0, 0), 0, 0)
    libc.msgctl(libc.msgget(key, 0), 0, None)
    libc.mq_unlink(f"/{mark}".encode())


KINDS = [
    (leaving.daemon, ["(open in"]),
    (listeners, ["(tcp)", "(tcp6)", "(udp)", "(udp6)", "(socket)"]),
    (leaving.shared_memory, ["/dev/shm/mark"]),
    (leaving.unlinked_files, ["(deleted) (open in"]),
    (leaving.memory_files, ["memfd"]),
    (leaving.kernel_objects, ["(shm)", "(sem)", "(msg)", "(queue)"]),
]


@pytest.mark.parametrize(("trick", "kinds"), KINDS)
def test_g24_what_a_program_leaves_that_nothing_confines_is_found(
    trick: Callable[[str], Any], kinds: list[str], mark: str, tmp_path: Path
) -> None:
    """Otherwise the test above could not find anything."""
    printed = tmp_path / "printed"
    with printed.open("w") as file:
        subprocess.run(
            [sys.executable, "-c", NOT_CONFINED, trick.__name__, mark], check=True, stdout=file, cwd=tmp_path,
            env=os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
    found = " ".join(named(mark, tmp_path, json.loads(printed.read_text())))
    assert [kind for kind in kinds if kind not in found] == []
