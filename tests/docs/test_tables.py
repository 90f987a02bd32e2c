"""The tables of the pages agree with the code."""

import re
import types
from pathlib import Path
from typing import Any, get_args

import pytest

from cloudpar import errors as sdk_errors
from cloudpar_master.adapters.aws.backend import POLICY as AWS_POLICY
from cloudpar_master.core.events import Event
from cloudpar_master.core.head import State
from cloudpar_master.core.policy import Policy
from cloudpar_protocol import limits
from cloudpar_protocol.errors import OUTCOME_ERRORS, REQUEST_ERRORS, Outcome
from cloudpar_protocol.routes import ROUTES
from docs import pages
from docs.pages import ROOT

PROTOCOL, STATES = ROOT / "docs/protocol.md", ROOT / "docs/state-machine.md"


def table(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of the first table after a heading, without its head; code marks and links are removed."""
    section = pages.without_links(page.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2])
    rows = re.search(r"^\|.*\n\|[-|]+\n((?:\|.*\n)+)", section, re.MULTILINE)
    assert rows is not None, heading
    return [[cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")] for line in rows[1].splitlines()]


def test_the_table_of_routes_is_complete() -> None:
    shown = [tuple(row[:4]) for row in table(PROTOCOL, "## Routes")]
    assert shown == [(r.name, r.role, r.request.__name__, r.reply.__name__) for r in ROUTES]


def test_the_table_of_errors_is_complete() -> None:
    shown = [(int(row[0]), row[1], row[2] == "yes", row[3].rstrip(" |")) for row in table(PROTOCOL, "## Errors")]
    kinds = REQUEST_ERRORS.values()
    assert shown == [(kind.status, kind.code, kind.retryable, (kind.__doc__ or "").replace("`", "")) for kind in kinds]


def test_the_table_of_limits_is_complete() -> None:
    known: dict[str, Any] = {name: value for name, value in vars(limits).items() if name.isupper()}
    del known["PROTOCOL_VERSION"]
    assert {row[0]: float(row[1]) for row in table(PROTOCOL, "## Limits")} == known


def test_requests_that_may_be_sent_again() -> None:
    shown = {name for row in table(PROTOCOL, "## Sending again") for name in row[0].split(", ")}
    reads = {
        "hello", "prepare_uploads", "await_tasks", "list_packages", "prepare_results", "list_accounts", "list_usage",
        "list_workers",
    }  # fmt: skip
    assert shown == {route.name for route in ROUTES} - reads


def test_the_table_of_events_is_complete() -> None:
    kinds = get_args(Event)
    assert isinstance(Event, types.UnionType)
    assert [row[0] for row in table(STATES, "## Events")] == [kind.__name__ for kind in kinds]


def test_the_table_of_states_is_complete() -> None:
    shown = [row[0].partition(",")[0] for row in table(STATES, "## A package")]
    assert list(dict.fromkeys(shown))[: len(get_args(State))] == [*get_args(State)]


def test_the_table_of_outcomes_is_complete() -> None:
    rows = {row[0]: row[2].rstrip(" |") for row in table(STATES, "## A task")}
    assert list(rows) == [*get_args(Outcome)]
    assert all(OUTCOME_ERRORS[name].__name__ in shown for name, shown in rows.items() if name != "ok")


def test_errors_of_the_guide_exist() -> None:
    for row in table(ROOT / "docs/sdk.md", "## Errors"):
        assert hasattr(sdk_errors, row[0].split(maxsplit=1)[0])


def test_the_limits_in_the_readme_are_the_codes() -> None:
    shown = {row[0]: row[1].rstrip(" |") for row in table(ROOT / "README.md", "## Limits")}
    policy = Policy()
    assert list(shown.values()) == [
        f"{limits.PACKAGE_TASKS:,}",
        f"{limits.BLOB_BYTES >> 30} GiB",
        ", ".join(
            f"{size >> 10} KiB"
            for size in (limits.INLINE_CODE_BYTES, limits.INLINE_DATA_BYTES, limits.INLINE_RESULT_BYTES)
        ),
        f"{limits.OUTPUT_BYTES >> 10} KiB",
        f"{limits.ERROR_TEXT_CHARS:,} characters",
        f"{policy.task_timeout_s / 3600:g} h",
        f"{policy.retention_s / 86400:g} days",
    ]


def test_the_table_of_time_limits_is_the_codes() -> None:
    shown = {row[0]: row[1] for row in table(ROOT / "docs/sdk.md", "## Time limits")}
    figure = f"({Policy().task_timeout_s / 3600:g} h)"
    assert shown["one task runs too long"].endswith(f"at most the operator's limit {figure}¹")


def test_the_table_of_an_accounts_limits_is_the_codes() -> None:
    rows = {row[0]: row[1:3] for row in table(ROOT / "docs/operations.md", "## Limits of an account")}
    for names, (embedded, aws) in rows.items():
        for policy, shown in (Policy(), embedded), (AWS_POLICY, aws):
            figures = [getattr(policy, name.strip("`")) for name in names.split(", ")]
            assert shown == ", ".join(f"{round(figure):,}" for figure in figures), names


def test_the_table_of_folders_is_complete() -> None:
    for row in table(ROOT / "docs/architecture.md", "## Folders"):
        assert (ROOT / row[0]).is_dir(), row[0]


def test_every_decision_is_listed() -> None:
    index = (ROOT / "docs/adr/README.md").read_text(encoding="utf-8")
    for path in sorted((ROOT / "docs/adr").glob("0*.md")):
        number, title = path.name[:4], path.read_text(encoding="utf-8").splitlines()[0]
        assert title == f"# {number}: {title[8:]}"
        assert f"- [{number}]({path.name}) {title[8:]}\n" in index


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    content = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", content):
        if "://" not in target:
            name, _, anchor = target.partition("#")
            linked = (page.parent / name) if name else page
            assert linked.exists(), f"{page}: {target}"
            assert not anchor or anchor in anchors(linked), f"{page}: {target}"


@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    for name in re.findall(r"`(tests/[\w/]+\.py)(?:::\w+)?`", page.read_text(encoding="utf-8")):
        assert (ROOT / name).is_file(), f"{page}: {name}"


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as code hosts make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
