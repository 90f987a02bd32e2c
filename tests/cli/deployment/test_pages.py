"""The pages about AWS agree with the code."""

import json
import re

from cloudpar.deployment import prices
from cloudpar.deployment.plan import FAMILIES
from cloudpar.deployment.prices import Shape
from cloudpar.deployment.project import CDK
from docs.pages import ROOT
from docs.settings import limits, settings
from docs.test_tables import anchors, table


def test_every_alarm_leads_to_a_section_of_the_runbook() -> None:
    declared = re.search(r"type Anchor = ([^;]+);", (ROOT / "infra/lib/runbook.ts").read_text(encoding="utf-8"))
    assert declared is not None
    assert set(re.findall(r"'([\w-]+)'", declared[1])) <= anchors(ROOT / "docs/runbook.md")


def test_the_pages_name_the_computed_cost_at_rest() -> None:
    lines = prices.idle(Shape())
    shown = [[*row[:2], row[2].rstrip(" |")] for row in table(ROOT / "docs/cost-model.md", "## At rest")]
    assert shown[:-1] == [[line.name, line.why, f"{line.usd:.3f}"] for line in lines]
    assert shown[-1][2] == f"{prices.total(lines):.2f}"


def test_the_worked_example_adds_up() -> None:
    rows = [row[-1].strip(" |") for row in table(ROOT / "docs/cost-model.md", "## A worked example")]
    *lines, total = map(float, rows)
    assert round(sum(lines), 2) == total


def test_the_settings_that_the_guide_names_exist() -> None:
    named = {row[0] for row in table(ROOT / "docs/deploy.md", "## Settings")}
    assert named <= settings()
    assert named >= limits()


def test_the_prices_are_of_the_fleets_families() -> None:
    source = (ROOT / "infra/lib/environments.ts").read_text(encoding="utf-8")
    families = source.partition("FAMILIES")[2]
    named = re.findall(r"'([a-z]\d[a-z]+(?:-flex)?)'", families)
    assert set(named) == set(prices.ON_DEMAND_USD)
    assert named == [each for known in FAMILIES.values() for each in known]


def test_the_pages_name_the_apps_cdk_version() -> None:
    package = json.loads((ROOT / "infra/package.json").read_text(encoding="utf-8"))
    assert package["devDependencies"]["aws-cdk"] == CDK
