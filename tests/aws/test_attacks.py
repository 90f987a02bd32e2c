"""What an attacker and instances that do not work can cost is what the cost model says.

The figures are those of the stack as the app generates it, of the requests that the functions send to AWS, and of AWS's
prices.
"""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from bench.aws_calls import flood
from bench.aws_calls.bill import HTTP_USD
from bench.aws_calls.zombie import Zombies

from cloudpar_protocol import routes
from cloudpar_protocol.tokens import new_token
from docs.pages import ROOT
from docs.test_tables import table

from .template import synthesized

pytestmark = pytest.mark.timeout(1_200)

PAGE = ROOT / "docs/cost-model.md"
ENVIRONMENTS = ("dev", "staging", "prod")
ENDS = re.compile(r"--poweroff \+(\d+) .*CLOUDPAR_SILENT_S:-(\d+)")
"""After how many minutes an instance switches itself off if watch.sh does not run, and after how many seconds without
an answer of the master watch.sh ends it.
"""


def shown(heading: str) -> list[list[str]]:
    return [[cell.rstrip(" |") for cell in row] for row in table(PAGE, heading)]


def resources(environment: str, kind: str) -> Iterator[dict[str, Any]]:
    return (each["Properties"] for each in synthesized(env=environment)["Resources"].values() if each["Type"] == kind)


def throttles(environment: str) -> dict[str, int]:
    """Return how many requests a second each throttle of the API lets pass."""
    (stage,) = resources(environment, "AWS::ApiGatewayV2::Stage")
    limits = {flood.CLIENTS: stage["DefaultRouteSettings"], **stage["RouteSettings"]}
    return {name: each["ThrottlingRateLimit"] for name, each in limits.items()}


def zombies(environment: str) -> Zombies:
    """Return the fleet. Its instances switch themselves off or end themselves, which their user data describes."""
    (group,) = resources(environment, "AWS::AutoScaling::AutoScalingGroup")
    launched = [each["LaunchTemplateData"] for each in resources(environment, "AWS::EC2::LaunchTemplate")]
    lives_s = set()
    for each in launched:
        ((boot_minutes, silent_s),) = ENDS.findall(str(each["UserData"]))
        lives_s.add(60 * int(boot_minutes) + int(silent_s))
    return Zombies(
        most=int(group["MaxSize"]),
        types=[each["InstanceType"] for each in group["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]],
        volume_gib=max(each["BlockDeviceMappings"][0]["Ebs"]["VolumeSize"] for each in launched),
        silent_s=max(lives_s),
    )


def test_floods_cost_what_the_cost_model_says() -> None:
    senders = flood.strangers(), flood.accounts()
    computed = [row for each in ENVIRONMENTS for row in flood.shown(each, throttles(each), *senders)]
    assert shown("### Floods of requests") == computed


def test_a_request_with_an_invalid_token_costs_what_the_cost_model_says() -> None:
    page = PAGE.read_text(encoding="utf-8")
    dear = {f"{usd * 1e6:.1f}" for usd in flood.strangers().values()}
    small = {f"{flood.refused_usd(route, new_token()) * 1e6:.1f}" for route in (routes.HELLO, routes.RETRIEVE_TASKS)}
    assert re.findall(r"costs (\S+) USD\s+a\s+million", page) == [*small, *dear]


def test_instances_that_do_not_work_cost_what_the_cost_model_says() -> None:
    assert shown("### Instances that do not work") == [zombies(each).shown(each) for each in ENVIRONMENTS]


def test_a_large_body_counts_as_several_requests() -> None:
    assert flood.body_usd(1) == 0
    assert flood.body_usd(512 * 1024 + 1) == HTTP_USD
