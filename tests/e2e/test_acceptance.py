"""infra/acceptance.sh on the stand-in by AWS's own command line, without the steps that need instances."""

import os
import re
from pathlib import Path

import pytest

from .deployment import ROOT, STACK, Deployment, run
from .stand_in import PROGRAM, REGION

LOOK = 'source <(sed -n "/^look() {/,/^}/p" infra/acceptance.sh); look "$@"'


@pytest.fixture
def environment(deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Put an `aws` on the PATH that reaches the stand-in. Without the option, its SQS commands would reach AWS."""
    aws = tmp_path / "aws"
    aws.write_text(f'#!/bin/sh\nexec {PROGRAM.with_name("aws")} --endpoint-url {deployment.aws.url} "$@"\n')
    aws.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return deployment.aws.environment


def test_a_release_is_accepted(deployment: Deployment, bundle: Path, environment: dict[str, str]) -> None:
    settings = (f"bundle={bundle}", "workerImage=example/worker:1", "architectures=x86_64")
    options = [part for setting in settings for part in ("--set", setting)]
    options += [part for step in ("map", "interruption") for part in ("--without", step)]
    output = run(["infra/acceptance.sh", "--env", "staging", "--region", REGION, *options], environment)
    assert output.endswith("acceptance: all steps passed, without map interruption\n")
    assert "Cloudpar-staging" not in deployment.stacks()


def test_the_search_for_what_is_left_finds_what_exists(deployment: Deployment, environment: dict[str, str]) -> None:
    pages = deployment.aws.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=STACK)
    resources = (each for page in pages for each in page["StackResourceSummaries"])
    existing = {each["ResourceType"]: each["PhysicalResourceId"] for each in resources}
    kinds = re.findall(r"^    (AWS::\w+::\w+)\)", (ROOT / "infra/acceptance.sh").read_text(), re.MULTILINE)
    assert kinds
    found = {kind: run(["bash", "-c", LOOK, "look", kind, existing[kind]], environment).strip() for kind in kinds}
    assert all(found.values()), found
