"""What `cloudpar workers` prints, and how other commands show workers that are set aside."""

from typing import Any

import pytest

from cli.drawing import drawn
from cloudpar.cli import set_aside
from cloudpar.cli.top import MasterState, draw
from cloudpar.cli.workers import ask, worker_table
from cloudpar.errors import CloudparError
from cloudpar_protocol.client_messages import PackageSummary, Progress
from cloudpar_protocol.errors import NotFound
from cloudpar_protocol.fleet_messages import ConnectedWorker, SetAside
from cloudpar_protocol.payloads import Unfit
from support.command import cloudpar, cloudpar_json
from support.up import Up, worker

LACKS = "no module named 'numpy'"


def connected(number: int, **changes: Any) -> ConnectedWorker:
    values: dict[str, Any] = {
        "worker_id": f"{number:032x}", "host": f"host-{number}", "executors": 4, "pythons": ["3.11"], "seen_at": 100.0,
    }  # fmt: skip
    return ConnectedWorker(**values | changes)


def package(number: int, *unfit: Unfit) -> PackageSummary:
    return PackageSummary(
        package_id=f"{number}" * 32, account_id="a", name="f", state="running", started_at=0.0,
        progress=Progress(tasks=10), set_aside=list(unfit),
    )  # fmt: skip


def test_the_widest_worker_fits_80_columns() -> None:
    wide = connected(
        1, host="ip-10-20-30-40.eu-central-1.compute.internal", executors=1_000, seen_at=40.0,
        pythons=["3.11", "3.12", "3.13", "3.14"],
    )  # fmt: skip
    heading, row = drawn(worker_table([wide], now=101.4), 80).splitlines()
    assert heading.split() == ["worker", "host", "executors", "Python", "seen"]
    for word in ("00000000", "ip-10-20-30-40.eu-centr", "1000", "3.11, 3.12, 3.13, 3.14", "1m 1s ago"):
        assert word in row
    assert len(row) <= 80


def test_a_worker_that_has_not_described_itself_shows_what_is_unknown() -> None:
    _, row = drawn(worker_table([ConnectedWorker(worker_id="w", seen_at=100.0)], now=100.0)).splitlines()
    assert row.split() == ["w", "-", "?", "-", "0s", "ago"]


def test_packages_are_grouped_by_the_reason_for_which_a_worker_is_set_aside() -> None:
    numbers = range(1, 6)
    aside = [SetAside(package_id=f"{number}" * 32, lacks=LACKS) for number in numbers]
    aside += [SetAside(package_id="6" * 32, lacks="no Python 3.12"), SetAside(package_id="7" * 32)]
    assert list(set_aside.of_workers([connected(1, set_aside=aside), connected(2)])) == [
        f"00000000 on host-1: {set_aside.UNKNOWN} (package 77777777)",
        "00000000 on host-1: no Python 3.12 (package 66666666)",
        f"00000000 on host-1: {LACKS} (packages 55555555, 44444444, 33333333 and 2 more)",
    ]


def test_packages_name_the_workers_that_are_set_aside_for_them() -> None:
    first, second = Unfit("a", LACKS), Unfit("b", "no Python 3.12")
    found = list(set_aside.of_packages([package(1, first), package(2, first, second), package(3)]))
    assert found == [
        f"set aside on a: {LACKS} (packages 11111111 and 22222222)",
        "set aside on b: no Python 3.12 (package 22222222)",
    ]


def test_top_shows_why_workers_are_set_aside() -> None:
    now = MasterState(at=1.0, endpoint="m", executors=1, packages=[package(1, Unfit("a", LACKS))], accounts=[])
    lines = [line.rstrip() for line in drawn(draw(now), 80).splitlines()]
    assert f"set aside on a: {LACKS} (package 11111111)" in lines


def test_a_master_of_an_earlier_release_gives_a_clear_error() -> None:
    class Master:
        endpoint = "http://m"

        def call(self, route: Any, _message: Any) -> Any:
            raise NotFound(f"no route /v1/{route.name}: there are hello, start_tasks")

    with pytest.raises(CloudparError, match="http://m is of an earlier release, which cannot list its workers: update"):
        ask(Master())


def test_workers_are_listed_as_they_connect(folder: Any) -> None:
    with Up(folder, workers=0) as up:
        admin = ["--data", str(folder)]
        assert cloudpar_json("workers", *admin)["workers"] == []
        assert cloudpar("workers", *admin).stdout == "No worker is connected: start one by `cloudpar worker`.\n"
        with worker(up, 2), up.pool() as pool:
            assert list(pool.map(abs, [-1])) == [1]
            (found,) = cloudpar_json("workers", *admin)["workers"]
            assert (found["executors"], found["set_aside"]) == (2, [])
            shown = cloudpar("workers", *admin).stdout
            assert shown.startswith(f"{up.endpoint}   1 worker, 2 executors\n")
            assert found["host"] in shown
        refused = cloudpar("workers", "--endpoint", up.endpoint, "--admin-token", up.connection["token"])
        assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (3, "", 1)
        # The master settles the package meanwhile, which changes its other fields between two commands.
        commands = [["packages"], ["packages", "list"]]
        by_default, by_name = (
            [each["package_id"] for each in cloudpar_json(*command, *admin)["packages"]] for command in commands
        )
        assert by_default == by_name != []
        assert cloudpar_json("account", *admin) == cloudpar_json("account", "list", *admin)
