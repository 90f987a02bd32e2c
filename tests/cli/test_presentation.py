"""Names that users choose are shown as they are in an operator's terminal, and have no effect on it."""

import json

import pytest
from msgspec.structs import replace
from rich.table import Table

from cli.drawing import drawn
from cloudpar.cli import application, doctor, set_aside
from cloudpar.cli.finding import Finding
from cloudpar.cli.foreground import log_line
from cloudpar.cli.package_tables import id_chars
from cloudpar.cli.package_tables import packages as package_table
from cloudpar.cli.presentation import account_table, console, print_json
from cloudpar.cli.workers import worker_table
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import PackageSummary, Progress
from cloudpar_protocol.errors import NotFound
from cloudpar_protocol.fleet_messages import ConnectedWorker, SetAside

HOSTILE = "[/red]\x1b[31mRED\x1b]0;title\x1b\\\u202e\nrow"
SHOWN = "[/red]?[31mRED?]0;title?\\??row"


def packages(name: str) -> Table:
    progress = Progress(tasks=1)
    return package_table(
        [PackageSummary(package_id="p", account_id="a", name=name, state="running", started_at=0.0, progress=progress)],
        {},
        200,
    )


def accounts(name: str) -> Table:
    return account_table([Account(account_id="a", name=name, state="active", created_at=0.0, granted_us=1, spent_us=0)])


def test_control_characters_in_a_name_are_not_printed() -> None:
    for table in (packages, accounts):
        text = drawn(table(HOSTILE))
        assert SHOWN in text
        assert "\x1b" not in text
        assert text.count("\n") == drawn(table("name")).count("\n")


def test_accounts_are_listed_with_what_they_store_if_the_master_says_it() -> None:
    account = Account(account_id="a", name="ann", state="active", created_at=0.0, granted_us=1, spent_us=0)
    assert "stored" not in drawn(account_table([account]))
    limited = replace(account, stored_bytes=3 * 1024**3 // 2, stored_limit=50 * 1024**3)
    text = drawn(account_table([limited, replace(account, stored_bytes=0)]))
    assert "stored" in text
    assert "1.5 of 50.0 GiB" in text
    assert " 0.0 GiB" in text


def test_json_consists_of_printable_ascii_characters(capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b[31m\x7f\x9b2J\u202e\u2028\ud800\U0001f600"
    print_json({"name": name, "names": [name], name: 1})
    line = capsys.readouterr().out.removesuffix("\n")
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line) == {"name": name, "names": [name], name: 1}


def test_an_error_that_quotes_a_hostile_name_does_not_change_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotFound("no package of \x9b2J\u202ename")

    monkeypatch.setattr(application.application, "main", refuse)
    assert application.run(["packages"]) == 5
    assert capsys.readouterr().err == "cloudpar: error: no package of ?2J?name\n"


def test_a_line_of_doctor_about_a_hostile_name_does_not_change_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "look_here", lambda: [Finding("sockets", "missing", f"tasks reach {HOSTILE}")])
    monkeypatch.setattr(doctor, "_look_there", lambda _user: [])
    assert application.run(["doctor"]) == 0
    assert capsys.readouterr().out == f"missing  sockets: tasks reach {SHOWN}\n"


def test_a_line_of_a_log_with_a_hostile_name_does_not_change_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    log_line(f"waiting for {HOSTILE}")
    assert capsys.readouterr().err.endswith(f"cloudpar: waiting for {SHOWN}\n")


def test_the_id_of_a_hostile_worker_does_not_change_the_terminal() -> None:
    aside = [SetAside(package_id="p", lacks=HOSTILE)]
    worker = ConnectedWorker(worker_id="\x9b2J\u202eid", host=HOSTILE, pythons=[HOSTILE], set_aside=aside, seen_at=0.0)
    for text in (drawn(worker_table([worker], now=0.0)), *set_aside.of_workers([worker])):
        assert "?2J?id" in text
        assert text.replace("\n", "").isprintable()


def listed(columns: int, names: dict[str, str] | None) -> list[str]:
    """The lines of a list of packages with the largest figures, in a terminal of some width."""
    progress = Progress(tasks=10_000_000, done=10_000_000, errors=99_999, executors=999, charged_us=99 * 86_400_000_000)
    found = [
        PackageSummary(
            package_id=f"s{number}" + "0123456789" * 3, account_id="a" * 16, name="a_function_of_a_long_name",
            state="cancelled", started_at=0.0, progress=progress,
        )
        for number in (1, 2)
    ]  # fmt: skip
    return drawn(package_table(found, names, columns), columns).splitlines()[1:]


@pytest.mark.parametrize("names", [None, {"a" * 16: "an account with a long name"}])
def test_a_list_of_packages_fits_80_columns_with_ids_that_can_be_pasted(names: dict[str, str] | None) -> None:
    headings, *rows = listed(80, names)
    assert headings.split() == [
        *("package", "function", "state"), *(["account"] if names else []), *("tasks", "done", "errors", "age")
    ]  # fmt: skip
    assert len(rows) == 2
    for row, start in zip(rows, ("s1012345", "s2012345"), strict=True):
        assert len(row) <= 80
        assert row.split()[0] == start
        for word in ("a_fun", "cancelled", "10,000,000 10,000,000", "99,999", *(["an account"] if names else [])):
            assert word in row


def test_a_wider_list_of_packages_has_the_cost_and_then_the_whole_ids() -> None:
    for columns in (120, 200):
        headings, row, _ = listed(columns, {})
        assert len(row) <= columns
        assert ("charged" in headings, "99d" in row) == (True, True)
        assert ("s1" + "0123456789" * 3 in row) == (columns == 200)


def test_ids_that_start_alike_are_shown_until_they_differ() -> None:
    assert id_chars(["0123456789a", "0123456789b", "1"]) == 11
    assert id_chars(["01", "1", "1"]) == 8


@pytest.mark.parametrize(("columns", "width"), [("", 200), ("80", 80), ("wide", 200)])
def test_output_into_a_pipe_has_the_width_of_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    console().print("x" * 300)
    assert len(capsys.readouterr().out.splitlines()[0]) == width
