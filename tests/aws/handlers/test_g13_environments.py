"""Functions of one release start with the environment variables of another.

CloudFormation replaces the code and the environment of a function one after the other, also when it rolls back.
"""

from pathlib import Path

import pytest

from aws import template
from cloudpar_protocol import routes
from cloudpar_protocol.client_messages import Hello

from .releases import Deployment, last_and_today


def test_functions_of_the_last_release_start_with_the_environment_of_todays_stack(
    stack: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del stack
    policy = template.function("client")["Environment"]["Variables"]["CLOUDPAR_POLICY"]
    monkeypatch.setenv("CLOUDPAR_POLICY", policy)
    with last_and_today(tmp_path) as both:
        assert [Deployment(each).ask(routes.HELLO, Hello()).role for each in both] == ["worker", "worker"]
