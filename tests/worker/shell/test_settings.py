"""What the agent derives from its settings: memory limits, and who is protected from signals."""

import os
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from cloudpar_worker.sandbox.syscall_filter import program
from cloudpar_worker.shell.settings import WorkerSettings, machine_memory_bytes, parse

V2, V1 = "memory.max", "memory/memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 1000),
        ({V2: "max\n"}, 1000),
        ({V2: "600\n"}, 600),
        ({V2: "1001\n"}, 1000),
        ({V1: "9223372036854771712\n"}, 1000),
        ({V1: "400\n"}, 400),
        ({V2: "600\n", V1: "400\n"}, 400),
        ({V2: ""}, 1000),
    ],
)
def test_the_smallest_memory_limit_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=1000))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert machine_memory_bytes(tmp_path) == expected


def test_executors_share_the_memory_of_the_machine() -> None:
    assert 0 < machine_memory_bytes() <= psutil.virtual_memory().total
    settings = WorkerSettings(endpoint="http://127.0.0.1:1", token="t", executors=3)
    assert settings.memory_bytes == int(machine_memory_bytes() * 0.9 / 3)
    assert WorkerSettings(endpoint="http://127.0.0.1:1", token="t", executors=3, memory_mb=7).memory_bytes == 7 << 20


def test_a_parent_in_another_container_is_not_protected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process id is 0 here, and a filter for 0 is not possible."""
    monkeypatch.setattr(os, "getppid", lambda: 0)
    monkeypatch.setattr(os, "getpgrp", lambda: 0)
    settings = WorkerSettings(endpoint="http://127.0.0.1:1", token="t", executors=1, isolation="shared")
    assert settings.confinement is not None
    assert settings.confinement.protected == [os.getpid()]
    assert program(settings.confinement.protected, own_user=True)


@pytest.mark.parametrize(("isolation", "valid"), [("shared", True), ("own", False), ("none", False)])
def test_only_a_worker_that_confines_tasks_can_keep_them_from_the_network(isolation: str, valid: bool) -> None:
    text = f'{{"endpoint": "http://h", "token": "t", "executors": 1, "isolation": "{isolation}", "network": "none"}}'
    if valid:
        confinement = parse(text.encode()).confinement
        assert confinement is not None
        assert confinement.network == "none"
    else:
        with pytest.raises(ValueError, match='needs isolation "shared"'):
            parse(text.encode())
