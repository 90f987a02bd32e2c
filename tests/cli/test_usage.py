"""What `cloudpar usage` prints."""

import csv
import io
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.drawing import drawn
from cli.here import Here
from cloudpar.cli import usage as command
from cloudpar.cli.usage import Line, Report, ask, usage_table
from cloudpar.errors import CloudparError
from cloudpar_protocol.account_messages import ListUsageReply, Usage
from cloudpar_protocol.errors import NotFound
from support.command import cloudpar, cloudpar_json
from support.up import Up


def line(**changes: Any) -> Line:
    values: dict[str, Any] = {
        "day": "2026-11-24", "account_id": "a1", "account": "ada", "packages": 3, "compute_s": 5400.0, "usd": 0.03,
    }  # fmt: skip
    return Line(**values | changes)


def charge(charged_us: int, day: str = "2026-11-24", account_id: str = "a") -> Usage:
    return Usage(account_id=account_id, day=day, charged_us=charged_us, packages=1)


class Master:
    """A master that answers with these parts, one after another."""

    endpoint = "http://m"

    def __init__(self, *parts: ListUsageReply) -> None:
        self._parts: Iterator[ListUsageReply] = iter(parts)
        self.cursors: list[str | None] = []

    def call(self, _route: Any, message: Any) -> Any:
        self.cursors.append(message.cursor)
        return next(self._parts)


def test_charges_of_several_parts_are_added_up() -> None:
    master = Master(
        ListUsageReply(usage=[charge(5, account_id="b"), charge(7)], cursor="next"),
        ListUsageReply(usage=[], cursor="last"),
        ListUsageReply(usage=[charge(1), charge(2, "2026-11-23")]),
    )
    assert [(each.day, each.account_id, each.charged_us, each.packages) for each in ask(master, "2026-11-01")] == [
        ("2026-11-23", "a", 2, 1), ("2026-11-24", "a", 8, 2), ("2026-11-24", "b", 5, 1),
    ]  # fmt: skip
    assert master.cursors == [None, "next", "last"]


def test_a_master_of_an_earlier_release_gives_a_clear_error() -> None:
    class Earlier:
        endpoint = "http://m"

        def call(self, route: Any, _message: Any) -> Any:
            raise NotFound(f"no route /v1/{route.name}")

    with pytest.raises(CloudparError, match="http://m is of an earlier release, which does not add up charges"):
        ask(Earlier(), "2026-11-01")


def test_the_widest_line_fits_80_columns_and_the_last_one_is_the_sum() -> None:
    wide = line(account="a very long name of an account that has it all", packages=10**6, compute_s=3e8, usd=99_999.0)
    rows = drawn(usage_table(Report("2026-10-26", 0.02, [wide, line()])), 80).splitlines()
    assert rows[0].split() == ["day", "account", "packages", "compute", "time", "USD"]
    assert all(len(row.rstrip()) <= 80 for row in rows)
    assert "99,999.0000" in rows[1]
    assert rows[-1].split() == ["together", "1,000,003", "3472d", "6h", "99,999.0300"]


def test_without_a_price_there_is_no_column_for_the_cost() -> None:
    shown = drawn(usage_table(Report("2026-10-26", None, [line(usd=None)])))
    assert "USD" not in shown


def test_the_output_has_one_form(here: Here) -> None:
    assert "--csv and --json are two forms" in here.error("usage", "--csv", "--json", "--data", "nowhere", code=2)


def test_the_compute_time_of_a_master_on_this_machine(tmp_path: Path) -> None:
    began = datetime.now(UTC).date().isoformat()
    with Up(tmp_path / "data", workers=1) as up:
        admin = ["--data", str(tmp_path / "data")]
        assert cloudpar("usage", *admin).stdout.startswith("No package has been settled since ")
        cloudpar("account", "create", "eve, the first", "--quota", "1h", *admin)
        with up.pool() as pool:
            assert list(pool.map(abs, [-1, -2])) == [1, 2]
        found = cloudpar_json("usage", *admin, "--executor-usd", "3600")
        (used,) = found["usage"]
        assert (used["account"], used["packages"]) == ("default", 1)
        assert used["usd"] == pytest.approx(used["compute_s"], abs=1e-6)
        assert began <= used["day"] <= datetime.now(UTC).date().isoformat()
        assert cloudpar_json("usage", *admin)["usage"][0]["usd"] is None
        (row,) = csv.DictReader(io.StringIO(cloudpar("usage", *admin, "--csv", "--days", "2").stdout))
        assert (row["account"], row["packages"], row["usd"]) == ("default", "1", "")
        refused = cloudpar("usage", "--endpoint", up.endpoint, "--admin-token", up.connection["token"])
        assert (refused.returncode, refused.stdout) == (3, "")


def test_as_many_days_are_listed_as_a_master_keeps() -> None:
    days = next(each for each in command.usage.params if each.name == "days")
    assert days.type.max == command.KEPT_DAYS == 60  # type: ignore[attr-defined]
