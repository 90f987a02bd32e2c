"""What a user has named stands in an operator's terminal as it is, and does nothing there."""

from rich.console import Console
from rich.table import Table

from cloudpar.cli.presentation import account_table, package_table
from cloudpar_protocol.account_messages import Account
from cloudpar_protocol.client_messages import PackageSummary, Progress

HOSTILE = "[/red]\x1b[31mRED\x1b]0;title\x1b\\\u202e\nrow"
SHOWN = "[/red]?[31mRED?]0;title?\\??row"


def drawn(table: Table) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def packages(name: str) -> Table:
    progress = Progress(tasks=1)
    return package_table(
        [PackageSummary(package_id="p", account_id="a", name=name, state="running", started_at=0.0, progress=progress)]
    )


def accounts(name: str) -> Table:
    return account_table([Account(account_id="a", name=name, state="active", created_at=0.0, granted_us=1, spent_us=0)])


def test_a_name_changes_no_terminal() -> None:
    for table in (packages, accounts):
        text = drawn(table(HOSTILE))
        assert SHOWN in text
        assert "\x1b" not in text
        assert text.count("\n") == drawn(table("name")).count("\n")
