"""How top draws snapshots. test_commands tests the snapshots of a real master."""

from typing import Any

from msgspec.structs import replace

from cli.drawing import drawn
from cloudpar.cli.presentation import age
from cloudpar.cli.top import ROWS, MasterState, draw, take
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import HelloReply, ListPackagesReply, PackageState, PackageSummary, Progress


def package(number: int, state: PackageState, done: int = 0) -> PackageSummary:
    progress = Progress(tasks=1000, done=done, executors=2, charged_us=90_000_000)
    return PackageSummary(
        package_id=f"pack-{number}", account_id="a", name="f", state=state, started_at=0.0, progress=progress
    )


def snapshot(at: float, packages: list[PackageSummary]) -> MasterState:
    account = Account(
        account_id="a", name="Ada", state="active", created_at=0.0,
        granted_us=3_600_000_000, spent_us=60_000_000, reserved_us=60_000_000,
    )  # fmt: skip
    return MasterState(at=at, endpoint="http://m", executors=2, packages=packages, accounts=[account])


def text(now: MasterState, before: MasterState | None = None, *, width: int = 160) -> str:
    return drawn(draw(now, before), width)


def test_packages_and_quota_are_shown() -> None:
    shown = text(snapshot(10.0, [package(1, "running", 250)]))
    for word in ("pack-1", "running", "1,000", "25 %", "1m 30s", "Ada", "1h", "58m", "1 running, 2 executors"):
        assert word in shown
    assert "tasks/s" not in shown


def test_the_rate_is_that_since_the_last_snapshot() -> None:
    before, now = snapshot(10.0, [package(1, "running", 250)]), snapshot(12.0, [package(1, "running", 650)])
    assert "200 tasks/s" in text(now, before)


def test_the_remaining_time_is_estimated_from_the_rate_or_the_mean_duration() -> None:
    before, now = snapshot(10.0, [package(1, "running", 250)]), snapshot(12.0, [package(1, "running", 650)])
    assert " 2s" in text(now, before).splitlines()[3]  # 350 tasks at 200 a second
    slow = package(1, "running", 900)
    slow = replace(slow, progress=replace(slow.progress, mean_us=3_000_000))
    assert "2m 30s" in text(snapshot(10.0, [slow])).splitlines()[3]  # 100 tasks of 3 s on 2 executors
    assert text(snapshot(10.0, [package(1, "completed", 1000)])).splitlines()[3].rstrip().endswith("-")


def test_the_largest_figures_fit_80_columns() -> None:
    progress = Progress(
        tasks=10_000_000, done=1_000_000, errors=99_999, executors=999, charged_us=99 * 3_600_000_000 + 59_000_000,
        mean_us=60_000_000,
    )  # fmt: skip
    packages = [
        PackageSummary(
            package_id=f"{number}" * 32, account_id=f"{number}" * 16, name="a_function_of_a_long_name", state="running",
            started_at=0.0, progress=progress,
        )
        for number in (1, 2)
    ]  # fmt: skip
    accounts = [
        Account(
            account_id=f"{number}" * 16, name="somewhat long a name", state="revoked", created_at=0.0,
            granted_us=36500 * 86_400_000_000, spent_us=99 * 86_400_000_000 + 3_600_000_000, reserved_us=86_400_000_000,
        )
        for number in (1, 2)
    ]  # fmt: skip
    now = MasterState(at=10.0, endpoint="http://127.0.0.1:8642", executors=999, packages=packages, accounts=accounts)
    shown = text(now, width=80)
    for word in ("11111111", "somewhat", "10,000,000", "10 %", "99,999", "999", "4d 3h", "a_func", "left"):
        assert word in shown
    rows = [line for line in shown.splitlines() if line.startswith(("11111111", "22222222"))]
    assert len(rows) == 4
    assert all(len(row.rstrip()) <= 80 for row in rows)
    assert all("running" in row and row.count("…") <= 2 for row in rows[:2])


def test_executors_of_an_older_master_are_counted_once() -> None:
    replies: dict[str, object] = {
        "hello": HelloReply(release="0.2.0", role="user"),
        "list_packages": ListPackagesReply(packages=[package(1, "running"), package(2, "running")]),
    }

    class Master:
        endpoint = "http://m"

        def call(self, route: Any, _message: Any) -> Any:
            return replies[route.name]

    assert take(Master()).executors == 2
    replies["list_packages"] = ListPackagesReply(packages=[package(1, "running"), package(2, "running")], executors=3)
    assert take(Master()).executors == 3


def test_running_packages_come_first_when_not_all_fit() -> None:
    ended = [package(number, "completed") for number in range(ROWS)]
    shown = text(snapshot(10.0, [*ended, package(99, "running")]))
    assert "pack-99" in shown
    assert f"pack-{ROWS - 1}" not in shown


def test_a_clock_that_is_behind_shows_no_negative_age() -> None:
    assert age(100.0, 90.0) == "0s"
    assert age(100.0, 190.4) == "1m 30s"
