"""Control groups that a machine has delegated to a process."""

from pathlib import Path

import pytest

from cloudpar_worker.sandbox.control_groups import delegated


def machine(folder: Path, controllers: str, *, kind: str = "cgroup2", group: str = "0::/service\n") -> Path:
    """Make the files of a process in the group /service, and return the process's folder."""
    process, own = folder / "process", folder / "mounted" / "service"
    process.mkdir()
    own.mkdir(parents=True)
    mounts = ["1 0 8:1 / / rw - ext4 /dev/root rw", f"2 1 0:9 / {folder / 'mounted'} rw shared:9 - {kind} {kind} rw"]
    (process / "mountinfo").write_text("\n".join(mounts) + "\n")
    (process / "cgroup").write_text(f"1:cpu:/other\n{group}")
    (own / "cgroup.controllers").write_text(f"{controllers}\n")
    for name in ("procs", "subtree_control"):
        (own / f"cgroup.{name}").touch()
    return process


@pytest.mark.parametrize(
    ("controllers", "found"),
    [("cpuset cpu io memory pids", ["cpu", "memory", "pids"]), ("memory", ["memory"]), ("", [])],
)
def test_the_controllers_of_the_own_group_are_delegated(tmp_path: Path, controllers: str, found: list[str]) -> None:
    assert delegated(machine(tmp_path, controllers)) == found


def test_nothing_is_delegated_without_version_2(tmp_path: Path) -> None:
    assert delegated(machine(tmp_path, "cpu", kind="cgroup")) == []


def test_nothing_is_delegated_to_a_process_without_a_group(tmp_path: Path) -> None:
    assert delegated(machine(tmp_path, "cpu", group="")) == []


def test_nothing_is_delegated_in_a_group_whose_children_get_no_controllers(tmp_path: Path) -> None:
    process = machine(tmp_path, "cpu")
    (tmp_path / "mounted/service/cgroup.subtree_control").unlink()
    assert delegated(process) == []


def test_nothing_is_delegated_on_a_machine_without_proc(tmp_path: Path) -> None:
    assert delegated(tmp_path / "none") == []
