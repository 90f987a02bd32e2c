"""What is drawn, from snapshots; that they are taken is tested with a real master in test_commands."""

from rich.console import Console

from cloudpar.cli.presentation import age
from cloudpar.cli.top import ROWS, Snapshot, draw
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import PackageState, PackageSummary, Progress


def package(number: int, state: PackageState, done: int = 0) -> PackageSummary:
    progress = Progress(tasks=1000, done=done, executors=2, charged_us=90_000_000)
    return PackageSummary(
        package_id=f"package-{number}", account_id="a", name="f", state=state, started_at=0.0, progress=progress
    )


def snapshot(at: float, packages: list[PackageSummary]) -> Snapshot:
    account = Account(
        account_id="a", name="Ada", state="active", created_at=0.0,
        granted_us=3_600_000_000, spent_us=60_000_000, reserved_us=60_000_000,
    )  # fmt: skip
    return Snapshot(at=at, endpoint="http://m", executors=2, packages=packages, accounts=[account])


def text(now: Snapshot, before: Snapshot | None = None) -> str:
    console = Console(width=160)
    with console.capture() as capture:
        console.print(draw(now, before))
    return capture.get()


def test_packages_and_quota_are_shown() -> None:
    drawn = text(snapshot(10.0, [package(1, "running", 250)]))
    for word in ("package-1", "running", "1,000", "250", "1m 30s", "Ada", "1h", "58m", "1 running, 2 executors"):
        assert word in drawn
    assert "tasks/s" not in drawn


def test_the_rate_is_that_since_the_last_snapshot() -> None:
    before, now = snapshot(10.0, [package(1, "running", 250)]), snapshot(12.0, [package(1, "running", 650)])
    assert "200 tasks/s" in text(now, before)


def test_running_packages_come_first_when_not_all_fit() -> None:
    ended = [package(number, "completed") for number in range(ROWS)]
    drawn = text(snapshot(10.0, [*ended, package(99, "running")]))
    assert "package-99" in drawn
    assert f"package-{ROWS - 1}" not in drawn


def test_a_clock_that_is_behind_shows_no_negative_age() -> None:
    assert age(100.0, 90.0) == "0s"
    assert age(100.0, 190.4) == "1m 30s"
