"""The contents of the image work: installed without Docker, and started as its container is."""

import os
import platform
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import psutil
import pytest

from cloudpar_worker.sandbox import uid_pool
from cloudpar_worker.sandbox.kernel import NEEDED
from support.processes import stop
from support.shared_up import cluster_of
from support.task_functions import mark_and_wait
from support.up import Up
from support.waiting import HANG_S, await_file
from worker.whereabouts import whereabouts

from .image import CONTRACT, ROOT, USER, Image

VERSION = ".".join(platform.python_version_tuple()[:2])


@pytest.fixture(scope="module")
def image(folder: Path) -> Image:
    requirements = folder / "user-requirements.txt"
    requirements.write_text("editables\n")
    return Image(folder, requirements)


master = cluster_of(workers=0)


@contextmanager
def container(image: Image, master: Up, folder: Path, **more: str) -> Iterator["subprocess.Popen[str]"]:
    """The entry point, started as the image's ENTRYPOINT and host/run.sh start it."""
    token = folder / "worker-token"
    token.write_text(master.connection["worker_token"] + "\n")
    token.chmod(0o600)
    environment = {
        "PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", "CLOUDPAR_ENDPOINT": master.endpoint,
        "CLOUDPAR_TOKEN_FILE": str(token), "CLOUDPAR_PYTHONS": str(image.pythons), "CLOUDPAR_PYTHON": VERSION,
        "CLOUDPAR_EXECUTORS": "2",
    }  # fmt: skip
    process = subprocess.Popen(
        [image.newest, "-I", str(image.entrypoint)], cwd="/", env=environment | more,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        stop(process)


def test_the_image_is_built_as_the_stack_builds_it(image: Image) -> None:
    docker = (ROOT / "worker/Dockerfile").read_text()
    assert f'ARG PYTHONS="{" ".join(CONTRACT["pythons"])}"' in docker
    assert f"\nuv=={metadata.version('uv')} " in (ROOT / "worker/build.txt").read_text()
    assert VERSION in image.versions
    assert image.log.count("install: Python") == len(image.versions)


def test_a_map_runs_and_no_process_is_root(image: Image, master: Up, folder: Path) -> None:
    root = os.getuid() == 0
    user = USER if root else os.getuid()
    with container(image, master, folder) as process, master.pool() as pool:
        found = list(pool.map(whereabouts, range(20)))
        environment = str(image.pythons / VERSION)
        for uid, prefix, module in found:
            assert (uid >= uid_pool.FIRST if root else uid == user, prefix) == (True, environment)
            assert module.startswith(environment)
        first = psutil.Process(process.pid)
        processes = [first, *first.children(recursive=True)]
        assert len(processes) >= 4  # the entry point, the agent, a zygote, and executors
        zygotes = psutil.Process(first.children()[0].pid).children()
        for each in processes:
            (uid,) = set(each.uids())
            assert uid == user or (root and uid >= uid_pool.FIRST)
            status = Path(f"/proc/{each.pid}/status").read_text()
            assert "\nNoNewPrivs:\t1\n" in status
            # Only the processes that give executors their user ids have the capabilities for that.
            capabilities = NEEDED if root and each in zygotes else 0
            assert f"\nCapEff:\t{capabilities:016x}\n" in status


def test_the_agent_shows_its_host_that_the_master_answers(image: Image, master: Up, folder: Path) -> None:
    signs = folder / "signs"
    signs.mkdir()
    if os.getuid() == 0:
        os.chown(signs, USER, USER)  # as host/prepare.sh does
    with container(image, master, folder, CLOUDPAR_SIGNS=str(signs)):
        await_file(signs / "heard")


def test_sigterm_drains_the_container(image: Image, master: Up, folder: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        container(image, master, folder, CLOUDPAR_WRITABLE=name) as process,
        master.pool() as pool,
    ):
        Path(name).chmod(0o777)
        running, gate = Path(name) / "running", Path(name) / "gate"
        results = pool.map(mark_and_wait, [(str(running), str(gate))])
        await_file(running)
        process.send_signal(signal.SIGTERM)
        gate.touch()
        assert process.wait(HANG_S) == 0
        assert list(results) == ["done"]


def test_sigterm_before_the_agent_starts_ends_the_container(image: Image, master: Up, folder: Path) -> None:
    token = folder / "token-that-is-late"
    os.mkfifo(token)
    with container(image, master, folder, CLOUDPAR_TOKEN_FILE=str(token)) as process, token.open("w"):
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 128 + signal.SIGTERM


def test_a_missing_version_of_python_is_named(image: Image, master: Up, folder: Path) -> None:
    with container(image, master, folder, CLOUDPAR_PYTHON="3.9") as process:
        output, _ = process.communicate(timeout=HANG_S)
    assert process.returncode == 2
    assert f"CLOUDPAR_PYTHON=3.9 is not in this image, which has {', '.join(image.versions)}" in output
